// A box that holds nothing unwanted: its cheapest point that keeps all rules, by cutting it further where they do not
// let the nearest point stand.

#include "recourse.hpp"

#include <cmath>

namespace cfmaps
{
namespace
{
constexpr size_t longest_closing = 1000;  // boxes in which a dive may still improve on its first answer
constexpr int most_repairs = 200;         // grid steps taken to bring a rounded point back into a relation

/// An infinite end of a range, as a number that sums can bear.
double finite(double end)
{
    constexpr double most = std::numeric_limits<float>::max();
    return std::isinf(end) ? std::copysign(most, end) : end;
}
}  // namespace

void Recourse::settle()
{
    tick();
    if (!may_win())
        return;
    std::vector<double> values(slots_.size());
    for (uint32_t axis = 0; axis < slots_.size(); ++axis)
        values[axis] = slots_[axis].value[ranges_[axis].near];
    const int32_t broken = broken_clause(values);
    if (broken >= 0)
        return branch_on_clause(broken);
    if (!keeps_relations(values))
        return branch_on_categories() ? void() : solve_relations();
    if (branch_on_reach(values))
        return;
    offer(values);
    if (is_collecting_)  // a box with several categories has an irreducible point for each of them
        branch_on_categories();
}

int32_t Recourse::broken_clause(const std::vector<double>& values) const
{
    for (uint32_t clause = 0; clause < rules_.clauses.size(); ++clause)
    {
        const auto holds = [&](uint32_t condition)
        {
            const auto& [axis, negated] = rules_.conditions[condition];
            const double low = plea_->rules.condition_low[condition], high = plea_->rules.condition_high[condition];
            return (low <= values[axis] && values[axis] <= high) != negated;
        };
        if (std::none_of(rules_.clauses[clause].begin(), rules_.clauses[clause].end(), holds))
            return static_cast<int32_t>(clause);
    }
    return -1;
}

/// One condition of the clause must hold: tries each.
void Recourse::branch_on_clause(uint32_t clause)
{
    for (uint32_t condition : rules_.clauses[clause])
    {
        const auto& [axis, negated] = rules_.conditions[condition];
        const double low = plea_->rules.condition_low[condition], high = plea_->rules.condition_high[condition];
        const size_t trail = trail_.size();
        if (!is_ordered(axis))
        {
            for (uint32_t category = 0; category < slots_[axis].size(); ++category)
                if (has_category(axis, category) && is_true(condition, category))
                {
                    if (keep_category(axis, category))
                        settle();
                    undo_to(trail);
                }
            continue;
        }
        const double infinity = std::numeric_limits<double>::infinity();
        if (!negated && keep_numbers(axis, low, high))
            settle();
        undo_to(trail);
        if (negated && low > -infinity && keep_numbers(axis, -infinity, rules_.previous(axis, low)))
            settle();
        undo_to(trail);
        if (negated && high < infinity && keep_numbers(axis, rules_.next(axis, high), infinity))
            settle();
        undo_to(trail);
    }
}

/// Where relations (or a collection) depend on a category that is not chosen yet: tries each; false when none does.
bool Recourse::branch_on_categories()
{
    for (uint32_t axis = 0; axis < slots_.size(); ++axis)
    {
        if (is_ordered(axis) || !(is_collecting_ || rules_.is_related[axis]))
            continue;
        const auto first = words_.begin() + first_word_[axis];
        int n_left = 0;
        std::for_each(first, first + slots_[axis].allowed.size(),
                      [&](uint64_t word) { n_left += std::popcount(word); });
        if (n_left < 2)
            continue;
        const size_t trail = trail_.size();
        for (uint32_t category = 0; category < slots_[axis].size(); ++category)
        {
            if (has_category(axis, category) && keep_category(axis, category))
                settle();
            undo_to(trail);
        }
        return true;
    }
    return false;
}

bool Recourse::keeps_relations(const std::vector<double>& values) const
{
    return std::all_of(rules_.relations.begin(), rules_.relations.end(),
                       [&](const Relation& relation)
                       {
                           std::vector<double> shares(values.size()), numbers(values.size());
                           for (size_t axis = 0; axis < values.size(); ++axis)
                           {
                               const bool ordered = is_ordered(axis);
                               const size_t cell = ordered ? 0 : static_cast<size_t>(values[axis]);
                               shares[axis] =
                                   ordered ? relation.axis[axis] : relation.category[lattice_.cell_start[axis] + cell];
                               numbers[axis] = ordered ? values[axis] : 1;
                           }
                           return holds_exactly(shares, numbers, relation.most);
                       });
}

/// Variables: the ordered axes of any relation. The categories are chosen, so they are constants.
bool Recourse::set_up_projection()
{
    related_.clear();
    variables_.clear();
    Total others = total_;
    for (uint32_t axis = 0; axis < slots_.size(); ++axis)
    {
        if (!is_ordered(axis) || !rules_.is_related[axis])
            continue;
        const Range& range = ranges_[axis];
        const AxisRule& rule = rules_.axes[axis];
        const double x = plea_->row[lattice_.columns[axis][0]];
        const double low = rules_.at_least(axis, range.low, x), high = rules_.at_most(axis, range.high, x);
        if (!(low <= high))
            return false;
        related_.push_back(axis);
        variables_.push_back({x, finite(low), finite(high), rule.up / unit_, rule.down / unit_});
        const bool changes = range.may_change || range.near != slots_[axis].kept;
        others.set(axis, changes ? rule.fixed / unit_ : 0);
    }
    other_costs_ = others.value();
    inequalities_.resize(rules_.relations.size());
    for (size_t row = 0; row < inequalities_.size(); ++row)
    {
        const Relation& relation = rules_.relations[row];
        inequalities_[row].share.clear();
        inequalities_[row].most = relation.most;
        for (uint32_t axis : related_)
            inequalities_[row].share.push_back(relation.axis[axis]);
        for (uint32_t axis = 0; axis < slots_.size(); ++axis)
            if (!is_ordered(axis))
                inequalities_[row].most -= relation.category[lattice_.cell_start[axis] + ranges_[axis].near];
    }
    return true;
}

void Recourse::solve_relations()
{
    if (!set_up_projection())
        return;
    const Projection::Result result = projection_.solve(variables_, inequalities_, norm_.power, other_costs_);
    if (result == Projection::Result::empty)
        return;
    const double rounding = 1 - 0x1p-50 * static_cast<double>(slots_.size() + 2);
    const double solved = norm_.is_maximum() ? std::max(projection_.bound(), other_costs_)
                                             : (projection_.bound() + other_costs_) * rounding;
    const double bound = std::max(total_.value(), solved);
    if (bound > best_.total)
        return;
    if (result == Projection::Result::uncertain)
    {
        unsolved_bound_ = std::min(unsolved_bound_, bound);
        return;
    }
    std::vector<double> values(slots_.size());
    for (uint32_t axis = 0; axis < slots_.size(); ++axis)
        values[axis] = slots_[axis].value[ranges_[axis].near];
    for (size_t i = 0; i < related_.size(); ++i)
        values[related_[i]] = projection_.point()[i];
    if (branch_on_changes(values) || branch_on_numbers(values))
        return;
    int32_t broken = broken_clause(values);
    const bool is_rounded = broken < 0 && round(values);
    broken = is_rounded ? broken_clause(values) : broken;
    if (broken >= 0)
        return branch_on_clause(broken);
    if (!is_rounded)
    {
        unsolved_bound_ = std::min(unsolved_bound_, bound);
        return;
    }
    if (branch_on_reach(values))
        return;
    least_bound_ = std::min(least_bound_, bound);
    offer(values);
}

/// Relations that move more axes than may change, or one at a price not yet paid: with and without each.
bool Recourse::branch_on_changes(const std::vector<double>& values)
{
    size_t n_changed = changed_;
    uint32_t chosen = 0;
    bool any = false;
    for (uint32_t axis : related_)
    {
        const Range& range = ranges_[axis];
        const double x = plea_->row[lattice_.columns[axis][0]];
        if (values[axis] == x || range.may_change || range.near != slots_[axis].kept)
            continue;
        ++n_changed;
        if (!any || rules_.axes[axis].fixed > rules_.axes[chosen].fixed)
            chosen = axis;
        any = true;
    }
    if (!any || (n_changed <= rules_.most_changes && rules_.axes[chosen].fixed == 0))
        return false;
    for (const bool as_is : {false, true})
    {
        const size_t trail = trail_.size();
        if (keep_value(chosen, as_is))
            settle();
        undo_to(trail);
    }
    return true;
}

/// Whole, listed and stepped numbers: below or above what the relations ask for.
bool Recourse::branch_on_numbers(const std::vector<double>& values)
{
    for (uint32_t axis : related_)
    {
        const double x = plea_->row[lattice_.columns[axis][0]];
        if (!rules_.is_discrete(axis) || rules_.at_most(axis, values[axis], x) == values[axis])
            continue;
        const double below = rules_.at_most(axis, values[axis], x), above = rules_.at_least(axis, values[axis], x);
        const size_t trail = trail_.size();
        if (keep_numbers(axis, ranges_[axis].low, below))
            settle();
        undo_to(trail);
        if (keep_numbers(axis, above, ranges_[axis].high))
            settle();
        undo_to(trail);
        return true;
    }
    return false;
}

/// Moves a real point to numbers of the grid that keep all relations, at most a few steps away; false if none is found.
bool Recourse::round(std::vector<double>& values) const
{
    std::vector<double> pull(related_.size(), 0.0);
    for (size_t row = 0; row < inequalities_.size(); ++row)
        for (size_t i = 0; i < related_.size(); ++i)
            pull[i] += projection_.multipliers()[row] * inequalities_[row].share[i];
    for (size_t i = 0; i < related_.size(); ++i)
    {
        const uint32_t axis = related_[i];
        double& value = values[axis];
        value = pull[i] > 0 || (pull[i] == 0 && value > variables_[i].x)
                    ? rules_.at_most(axis, value, variables_[i].x)
                    : rules_.at_least(axis, value, variables_[i].x);
        value = std::clamp(value, variables_[i].low, variables_[i].high);
    }
    for (int repair = 0; repair < most_repairs && !keeps_relations(values); ++repair)
        for (const Inequality& inequality : inequalities_)
            for (size_t i = 0; i < related_.size(); ++i)
            {
                double excess = -inequality.most;
                for (size_t other = 0; other < related_.size(); ++other)
                    excess += inequality.share[other] * values[related_[other]];
                const uint32_t axis = related_[i];
                const double share = inequality.share[i];
                if (excess < 0 || share == 0 || rules_.is_discrete(axis) || values[axis] == variables_[i].x)
                    continue;
                const double next = share > 0 ? rules_.previous(axis, values[axis]) : rules_.next(axis, values[axis]);
                values[axis] = std::clamp(next, variables_[i].low, variables_[i].high);
            }
    return keeps_relations(values);
}

void Recourse::offer(const std::vector<double>& values)
{
    Finding finding{true, 0, std::vector<double>(values.size()), values};
    Total total(values.size(), norm_.is_maximum());
    for (uint32_t axis = 0; axis < values.size(); ++axis)
    {
        finding.costs[axis] = cost_of(axis, values[axis]);
        total.set(axis, finding.costs[axis]);
    }
    finding.total = total.value();
    if (is_collecting_)
        return finding.total <= best_.total ? collect(std::move(finding)) : void();
    if (finding.total < best_.total ||
        (finding.total == best_.total && (!best_.found || is_before(finding.costs, finding.values))))
        best_ = std::move(finding);
    if (is_diving_ && dive_ends_ > ticks_ + longest_closing)
        dive_ends_ = ticks_ + longest_closing;
}

/// Keeps the findings of which no part can be taken back.
void Recourse::collect(Finding finding)
{
    for (const Finding& other : findings_)
        if (reduces(other, finding))
            return;
    std::erase_if(findings_, [&](const Finding& other) { return reduces(finding, other); });
    if (findings_.size() >= most_findings_)
        throw Enough{};
    findings_.push_back(std::move(finding));
}

/// Whether one point lies between the row and another on every axis, or is that other.
bool Recourse::reduces(const Finding& less, const Finding& more) const
{
    for (uint32_t axis = 0; axis < less.values.size(); ++axis)
    {
        const double a = less.values[axis], b = more.values[axis];
        const double x = is_ordered(axis) ? plea_->row[lattice_.columns[axis][0]] : slots_[axis].kept;
        if (a != b && !(is_ordered(axis) ? (x <= a && a <= b) || (b <= a && a <= x) : a == x))
            return false;
    }
    return true;
}
}  // namespace cfmaps
