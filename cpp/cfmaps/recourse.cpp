#include "recourse.hpp"

#include <cmath>

namespace cfmaps
{
namespace
{
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double first_radius = 0.25;   // of the way to the first answer found
constexpr double growth = 1.4;          // of the radius from pass to pass
constexpr double fine_bracket = 1.3;    // around the first radius of a cold search
constexpr size_t longest_dive = 20000;  // nodes and boxes

std::vector<const Lattice*> lattices_of(const Forest& forest, const std::vector<Demand>& demands)
{
    std::vector<const Lattice*> lattices{&forest.lattice};
    for (const Demand& demand : demands)
        lattices.push_back(&demand.forest->lattice);
    return lattices;
}
}  // namespace

Recourse::Recourse(const Map& map, std::vector<Demand> demands, const Rules& rules, const Norm& norm,
                   const Norm& maximum)
    : map_(map), forest_(map.forest()), lattice_(forest_.lattice), nodes_(map.nodes()), rules_(rules), norm_(norm),
      demands_(std::move(demands)), slotting_(lattices_of(forest_, demands_), rules),
      total_(lattice_.n_axes(), norm.is_maximum()), ranges_(lattice_.n_axes()), first_word_(lattice_.n_axes())
{
    narrower_.emplace_back(forest_);
    for (const Demand& demand : demands_)
        narrower_.emplace_back(*demand.forest);
    uint32_t n_words = 0;
    for (size_t axis = 0; axis < lattice_.n_axes(); ++axis)
    {
        first_word_[axis] = n_words;
        n_words += is_ordered(axis) ? 0 : (lattice_.n_cells[axis] + 63) / 64;
    }
    words_.resize(n_words);
    if (norm.power != 1 && norm.power != 2 && !norm.is_maximum())
        scout_ = std::make_unique<Recourse>(map, demands_, rules, maximum, maximum);
}

Outcome Recourse::nearest(const Plea& plea, Clock::time_point deadline, Limits& limits)
{
    limits_ = &limits;
    deadline_ = deadline;
    Outcome outcome;
    if (!ask(plea, outcome) || (scout_ && !find_unit(plea, outcome)))
        return outcome;
    deepen(outcome);
    outcome.visited += visited_;
    outcome.evaluated += evaluated_;
    return outcome;
}

/// Takes in the question; false when the row answers it.
bool Recourse::ask(const Plea& plea, Outcome& outcome)
{
    plea_ = &plea;
    visited_ = evaluated_ = 0;
    is_collecting_ = is_diving_ = false;
    outcome.source = static_cast<int32_t>(forest_.trees.label(plea.row));
    const bool any_other = plea.target == undecided;
    wanted_ = {static_cast<uint32_t>(any_other ? outcome.source : plea.target), any_other};
    const uint8_t bit = Node::class_bit(wanted_.label);
    wanted_bits_ = !any_other ? bit : forest_.lanes.n_classes > 8 ? 0xFF : static_cast<uint8_t>(~bit);
    if (outcome.source == plea.target && plea.keeps_rules)
    {
        outcome.status = Status::optimal;
        outcome.is_itself = true;
        return false;
    }
    slotting_.prepare(slots_, plea.row, plea.rules);
    price(1);
    return true;
}

/// Powers of gaps need a unit near the answer; see Search.
bool Recourse::find_unit(const Plea& plea, Outcome& outcome)
{
    outcome = scout_->nearest(plea, deadline_, *limits_);
    if (outcome.status == Status::feasible)  // in this norm it is farther
    {
        price(outcome.distance > 0 ? outcome.distance : 1);
        for (uint32_t axis = 0; axis < slots_.size(); ++axis)
            total_.set(axis, cost_of(axis, outcome.values[axis]));
        outcome.distance = root(total_.value());
    }
    if (outcome.status != Status::optimal || outcome.distance == 0)
        return false;
    price(outcome.distance);
    return true;
}

void Recourse::price(double unit)
{
    unit_ = unit;
    size_t table = 0;
    for (size_t axis = 0; axis < slots_.size(); ++axis)
        price_axis(axis, table);
}

/// What an ordered axis costs at a value, in units, raised to the norm's power.
double Recourse::raised_gap(size_t axis, double z) const
{
    const AxisRule& rule = rules_.axes[axis];
    const double x = plea_->row[lattice_.columns[axis][0]];
    if (z == x)
        return 0;
    const double gap = z > x ? rule.up / unit_ * (z - x) : rule.down / unit_ * (x - z);
    return norm_.raise(rule.fixed == 0 ? gap : gap + rule.fixed / unit_);
}

void Recourse::price_axis(size_t axis, size_t& table)
{
    Slots& slots = slots_[axis];
    slots.cost.resize(slots.size());
    if (!is_ordered(axis))
    {
        const double scale = norm_.raise(1 / unit_);
        const double* costs = &norm_.category_costs[axis][slots.kept * slots.size()];
        for (size_t slot = 0; slot < slots.size(); ++slot)
            slots.cost[slot] = scale * costs[slot];
        return;
    }
    if (slots.size() == 0)
        return;
    for (size_t slot = 0; slot < slots.size(); ++slot)
        slots.cost[slot] = rules_.axes[axis].has_table ? norm_.raise(plea_->rules.gaps[table++] / unit_)
                                                       : raised_gap(axis, slots.value[slot]);
    const double x = plea_->row[lattice_.columns[axis][0]];
    const auto first = slots.value.begin();
    size_t home = std::lower_bound(first, slots.value.end(), x) - first;
    if (home == slots.size() || (home > 0 && slots.value[home] != x && slots.cost[home - 1] <= slots.cost[home]))
        --home;
    slots.home = static_cast<uint32_t>(home);
    for (size_t slot = home; slot-- > 0;)  // std::pow need not be monotone in its last digit; a search must be
        slots.cost[slot] = std::max(slots.cost[slot], slots.cost[slot + 1]);
    for (size_t slot = home + 1; slot < slots.size(); ++slot)
        slots.cost[slot] = std::max(slots.cost[slot], slots.cost[slot - 1]);
}

/// The cost of a value that a slot allows; that of its slot, unless relations moved it.
double Recourse::cost_of(size_t axis, double value) const
{
    const Slots& slots = slots_[axis];
    if (!is_ordered(axis))
        return slots.cost[static_cast<size_t>(value)];
    const uint32_t slot = slots.of(value);
    return slots.value[slot] == value ? slots.cost[slot] : std::max(raised_gap(axis, value), slots.cost[slot]);
}

void Recourse::deepen(Outcome& outcome)
{
    best_ = {.total = infinity};
    least_bound_ = unsolved_bound_ = infinity;
    double proven = 0;
    try
    {
        if (go_home())
            grow_balls(proven);
        outcome.status = best_.found ? Status::optimal : Status::infeasible;
        if (unsolved_bound_ < (best_.found ? best_.total : infinity))
        {
            outcome.status = best_.found ? Status::feasible : Status::unknown;
            outcome.lower_bound = root(unsolved_bound_);
        }
        else
            outcome.lower_bound = best_.found ? root(std::min(best_.total, least_bound_)) : infinity;
    }
    catch (const Stopped&)
    {
        outcome.status = best_.found ? Status::feasible : Status::unknown;
        outcome.lower_bound = proven;
    }
    outcome.distance = best_.found ? root(best_.total) : infinity;
    outcome.values = best_.values;
}

/// Searches balls of growing radius; the first that holds anything holds the optimum.
void Recourse::grow_balls(double& proven)
{
    if (!dive())  // the map has been walked to its end
        return;
    const Finding incumbent = best_;
    const double all = largest_total();
    double radius = incumbent.found ? root(incumbent.total) * first_radius : first_radius_in_reach(proven);
    radius = std::max(radius, std::numeric_limits<double>::min());  // a share of the smallest number is 0
    for (;; radius *= growth)
    {
        const bool to_incumbent = incumbent.found && radius >= root(incumbent.total);
        const bool last = to_incumbent || !(raised(radius) < all);
        try
        {
            pass(last ? incumbent.found ? incumbent : Finding{.total = infinity} : Finding{.total = raised(radius)});
        }
        catch (const Stopped&)
        {
            if (!best_.found)
                best_ = incumbent;
            throw;
        }
        if (best_.found || last)
            return;
        // Boxes that relations left unsolved, or whose points were rounded out of the ball, bound what it proves.
        proven = std::max(proven, std::min(radius, root(std::min(unsolved_bound_, least_bound_))));
    }
}

/// Walks the decided part of the map for a while, ever closer; false when that has told all there is.
bool Recourse::dive()
{
    is_diving_ = true;
    dive_ends_ = ticks_ + longest_dive;
    bool is_whole = false;
    try
    {
        pass(Finding{.total = infinity});
        is_whole = best_.found || unsolved_bound_ == infinity;
    }
    catch (const Enough&)
    {
    }
    is_diving_ = false;
    return !is_whole;
}

double Recourse::first_radius_in_reach(double& proven)
{
    if (!may_hold_within(infinity))
        return infinity;
    double low = smallest_step(), high = root(largest_total());
    while (high > low * fine_bracket)
    {
        const double middle = std::sqrt(low) * std::sqrt(high);
        if (!(low < middle && middle < high))
            break;
        if (may_hold_within(raised(middle)))
            high = middle;
        else
            low = proven = middle;
    }
    return high;
}

bool Recourse::may_hold_within(double cap)
{
    best_ = {.total = cap};
    if (!go_home())
        return false;
    shrink();
    Frame& top = frame(0);
    top.box.resize(1);
    top.state.resize(1);
    write_box(0, top.box[0]);
    narrower_[0].start(top.state[0], top.box[0]);
    ++evaluated_;
    return narrower_[0].may_hold(top.state[0], wanted_);
}

/// Puts the whole of what the rules leave back; false when that is nothing, or too dear.
bool Recourse::go_home()
{
    trail_.clear();
    changed_ = 0;
    for (uint32_t axis = 0; axis < slots_.size(); ++axis)
    {
        const Slots& slots = slots_[axis];
        if (slots.size() == 0)
            return false;
        const uint32_t last = static_cast<uint32_t>(slots.size() - 1);
        if (!is_ordered(axis))
        {
            std::copy(slots.allowed.begin(), slots.allowed.end(), words_.begin() + first_word_[axis]);
            if (std::all_of(slots.allowed.begin(), slots.allowed.end(), [](uint64_t word) { return word == 0; }))
                return false;
            ranges_[axis] = {0, last, cheapest_category(axis), 0, 0, false};
        }
        else
            ranges_[axis] = {0, last, slots.home, slots.low[0], slots.high[last], false};
        changed_ += ranges_[axis].near != slots.kept;
        total_.set(axis, slots.cost[ranges_[axis].near]);
    }
    for (uint32_t axis = 0; axis < slots_.size(); ++axis)
        if (!clauses_possible(axis) || !relations_possible(axis))
            return false;
    return changed_ <= rules_.most_changes && may_win();
}

void Recourse::pass(const Finding& bound)
{
    best_ = bound;
    least_bound_ = unsolved_bound_ = infinity;
    if (go_home())
        walk(0);
}

double Recourse::smallest_step() const
{
    double step = infinity;
    for (const Slots& slots : slots_)
        for (double cost : slots.cost)
            if (cost > 0)
                step = std::min(step, cost);
    return root(step);
}

double Recourse::largest_total() const
{
    Total total(slots_.size(), norm_.is_maximum());
    for (size_t axis = 0; axis < slots_.size(); ++axis)
        total.set(axis, *std::max_element(slots_[axis].cost.begin(), slots_[axis].cost.end()));
    return total.value();
}

Harvest Recourse::within(const Plea& plea, double distance, size_t most, Clock::time_point deadline, Limits& limits)
{
    limits_ = &limits;
    deadline_ = deadline;
    Outcome outcome;
    Harvest harvest;
    Plea any_plea = plea;
    any_plea.keeps_rules = false;  // the row itself is found like any other point
    if (!ask(any_plea, outcome))
        return harvest;
    if (scout_)
        price(distance > 0 ? distance : 1);
    findings_.clear();
    most_findings_ = most;
    is_collecting_ = true;
    try
    {
        pass(Finding{.total = raised(distance)});
        harvest.is_complete = unsolved_bound_ == infinity;
    }
    catch (const Stopped&)
    {
    }
    catch (const Enough&)
    {
    }
    is_collecting_ = false;
    for (Finding& finding : findings_)
        finding.total = root(finding.total);
    harvest.findings = std::move(findings_);
    return harvest;
}

std::vector<double> Recourse::values(const double* row, const RowRules& of_row, size_t axis)
{
    slotting_.prepare(slots_, row, of_row);
    return slots_[axis].value;
}
}  // namespace cfmaps
