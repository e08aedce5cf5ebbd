// What is left of each axis, and whether the rules can still be kept there.

#include "recourse.hpp"

#include <cmath>

namespace cfmaps
{
bool Recourse::keep_range(uint32_t axis, uint32_t lo, uint32_t hi)
{
    if (lo > hi)
        return false;
    save(axis);
    Range& range = ranges_[axis];
    const Slots& slots = slots_[axis];
    range.lo = lo;
    range.hi = hi;
    range.low = std::max(range.low, slots.low[lo]);
    range.high = std::min(range.high, slots.high[hi]);
    return range.low <= range.high && place(axis, std::clamp(slots.home, lo, hi));
}

/// Keeps the numbers of an interval, which may end within slots.
bool Recourse::keep_numbers(uint32_t axis, double low, double high)
{
    const Slots& slots = slots_[axis];
    if (!(low <= high))
        return false;
    const uint32_t lo = std::max(slots.of(low), ranges_[axis].lo);
    uint32_t hi = slots.of(high);
    if (slots.low[hi] > high)  // the slot that would hold it has no admissible number
    {
        if (hi == 0)
            return false;
        --hi;
    }
    hi = std::min(hi, ranges_[axis].hi);
    if (lo > hi)
        return false;
    save(axis);
    ranges_[axis].low = std::max(ranges_[axis].low, low);
    ranges_[axis].high = std::min(ranges_[axis].high, high);
    return keep_range(axis, lo, hi);
}

/// Keeps the row's own value, or counts the axis as one that changes.
bool Recourse::keep_value(uint32_t axis, bool as_is)
{
    const double x = plea_->row[lattice_.columns[axis][0]];
    if (as_is)
        return keep_numbers(axis, x, x);
    save(axis);
    changed_ += ranges_[axis].near == slots_[axis].kept;
    ranges_[axis].may_change = true;
    return changed_ <= rules_.most_changes;
}

bool Recourse::keep_category(uint32_t axis, uint32_t category)
{
    return keep_categories(axis, [category](size_t word)
                           { return word == category / 64 ? uint64_t{1} << (category % 64) : uint64_t{0}; });
}

uint32_t Recourse::cheapest_category(uint32_t axis) const
{
    const Slots& slots = slots_[axis];
    uint32_t best = 0;
    bool found = false;
    for (uint32_t category = 0; category < slots.size(); ++category)
        if (has_category(axis, category) && (!found || slots.cost[category] < slots.cost[best]))
        {
            best = category;
            found = true;
        }
    return best;
}

/// Moves the nearest point of the box on one axis; false when the box can no longer win or keep the rules.
bool Recourse::place(uint32_t axis, uint32_t near)
{
    Range& range = ranges_[axis];
    const Slots& slots = slots_[axis];
    if (near != range.near)
    {
        if (!range.may_change)
            changed_ = changed_ + (near != slots.kept) - (range.near != slots.kept);
        range.near = near;
        total_.set(axis, slots.cost[near]);
    }
    return changed_ <= rules_.most_changes && may_win() && clauses_possible(axis) && relations_possible(axis);
}

void Recourse::undo_to(size_t trail)
{
    for (; trail_.size() > trail; trail_.pop_back())
    {
        const auto& [axis, range, word, before] = trail_.back();
        const auto counts = [&](const Range& of) { return of.may_change || of.near != slots_[axis].kept; };
        changed_ = changed_ + counts(range) - counts(ranges_[axis]);
        if (range.near != ranges_[axis].near)
            total_.set(axis, slots_[axis].cost[range.near]);
        ranges_[axis] = range;
        if (word != no_word)
            words_[word] = before;
    }
}

/// Equal totals: the costs decide, axis by axis, then the values. A box comes before a point if it may.
bool Recourse::is_before(std::span<const double> costs, std::span<const double> values) const
{
    for (size_t axis = 0; axis < costs.size(); ++axis)
        if (costs[axis] != best_.costs[axis])
            return costs[axis] < best_.costs[axis];
    if (values.empty())
        return true;
    return std::lexicographical_compare(values.begin(), values.end(), best_.values.begin(), best_.values.end());
}

bool Recourse::is_true(uint32_t condition, uint32_t slot) const
{
    const auto& [axis, negated] = rules_.conditions[condition];
    const double low = plea_->rules.condition_low[condition], high = plea_->rules.condition_high[condition];
    const double value = slots_[axis].value[slot];
    return (low <= value && value <= high) != negated;
}

/// Whether a condition can hold in the box, and whether it must. Slots never straddle the ends of a condition.
Recourse::Truth Recourse::truth(uint32_t condition) const
{
    const auto& [axis, negated] = rules_.conditions[condition];
    const Slots& slots = slots_[axis];
    const Range& range = ranges_[axis];
    if (!is_ordered(axis))
    {
        Truth truth{false, true};
        for (uint32_t category = 0; category < slots.size(); ++category)
            if (has_category(axis, category))
            {
                truth.possible |= is_true(condition, category);
                truth.certain &= is_true(condition, category);
            }
        return truth;
    }
    const double low = plea_->rules.condition_low[condition], high = plea_->rules.condition_high[condition];
    const bool all = low <= slots.value[range.lo] && slots.value[range.hi] <= high;
    const auto first = std::lower_bound(slots.value.begin() + range.lo, slots.value.begin() + range.hi + 1, low);
    const bool any = first != slots.value.begin() + range.hi + 1 && *first <= high;
    return negated ? Truth{!all, !any} : Truth{any, all};
}

bool Recourse::clauses_possible(uint32_t axis) const
{
    for (uint32_t clause : rules_.clauses_of[axis])
    {
        const auto& conditions = rules_.clauses[clause];
        if (std::none_of(conditions.begin(), conditions.end(),
                         [this](uint32_t condition) { return truth(condition).possible; }))
            return false;
    }
    return true;
}

bool Recourse::relations_possible(uint32_t axis) const
{
    return !rules_.is_related[axis] ||
           std::all_of(rules_.relations.begin(), rules_.relations.end(),
                       [this](const Relation& relation) { return least_of(relation) <= relation.most; });
}

/// The least a relation can sum to in the box, less what rounding may have added.
double Recourse::least_of(const Relation& relation) const
{
    double sum = 0, size = std::abs(relation.most);
    for (uint32_t axis = 0; axis < slots_.size(); ++axis)
    {
        double least = 0;
        if (!rules_.is_related[axis])
            continue;
        if (is_ordered(axis))
        {
            const double share = relation.axis[axis];
            least = share == 0 ? 0 : share * (share > 0 ? ranges_[axis].low : ranges_[axis].high);
        }
        else
        {
            least = std::numeric_limits<double>::infinity();
            for (uint32_t category = 0; category < slots_[axis].size(); ++category)
                if (has_category(axis, category))
                    least = std::min(least, relation.category[lattice_.cell_start[axis] + category]);
        }
        sum += least;
        size += std::abs(least);
    }
    return std::isinf(sum) ? sum : sum - size * 0x1p-48;
}
}  // namespace cfmaps
