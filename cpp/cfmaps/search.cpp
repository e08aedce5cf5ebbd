#include "search.hpp"

#include <cmath>

namespace cfmaps
{
namespace
{
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double first_radius = 0.25;  // of the way to the first answer found
constexpr double growth = 1.4;         // of the radius from pass to pass
constexpr double fine_bracket = 1.3;   // around the first radius of a cold search
constexpr size_t quick_search = 2000;  // boxes after which an incumbent is worth its while
}  // namespace

Search::Search(const Forest& forest, const Nodes& nodes, const Norm& norm, const Norm& maximum)
    : forest_(forest), lattice_(forest.lattice), n_columns_(forest.lattice.n_columns()), nodes_(nodes), norm_(norm),
      costs_(lattice_, norm), total_(lattice_.n_axes(), norm.is_maximum()), narrower_(forest), cells_(lattice_.n_axes())
{
    if (norm.power != 1 && norm.power != 2 && !norm.is_maximum())
        scout_ = std::make_unique<Search>(forest, nodes, maximum, maximum);
}

Answer Search::nearest(const double* row, int32_t target, Clock::time_point deadline, Limits& limits)
{
    limits_ = &limits;
    deadline_ = deadline;
    visited_ = evaluated_ = 0;
    is_diving_ = false;  // a search that was stopped may have left it
    row_ = row;
    costs_.prepare(row);
    Answer answer;
    answer.source = static_cast<int32_t>(label_of(row));
    if (answer.source == target)
    {
        answer.status = Status::optimal;
        answer.label = target;
        return answer;
    }
    want(target, answer.source);
    if (scout_ && !find_unit(row, answer))
        return answer;
    deepen(answer);
    answer.visited += visited_;
    answer.evaluated += evaluated_;
    return answer;
}

void Search::want(int32_t target, uint32_t source)
{
    const bool any_other = target == undecided;
    wanted_ = {any_other ? source : static_cast<uint32_t>(target), any_other};
    const uint8_t bit = Node::class_bit(wanted_.label);
    // With more than 8 classes several share a bit.
    wanted_bits_ = !any_other ? bit : forest_.lanes.n_classes > 8 ? 0xFF : static_cast<uint8_t>(~bit);
}

/// The map knows the class of a row in its decided part; elsewhere, and beyond the limits, the trees do.
uint32_t Search::label_of(const double* row) const
{
    Node node = nodes_.read(0);
    if (!costs_.is_inside())
        return forest_.trees.label(row);
    while (node.is_inner())
    {
        const Test& test = lattice_.tests[node.test()];
        node = nodes_.read(node.child() + goes_right(test, costs_.home(test.axis)));
    }
    return node.is_leaf() ? node.label() : forest_.trees.label(row);
}

/// Powers of gaps overflow or vanish unless they are taken in a unit near the answer: the optimum of the maximum
/// norm is within a factor of the number of axes of it. False when the scout's answer stands.
bool Search::find_unit(const double* row, Answer& answer)
{
    answer =
        scout_->nearest(row, wanted_.all_others ? undecided : static_cast<int32_t>(wanted_.label), deadline_, *limits_);
    if (answer.status != Status::optimal || answer.distance == 0)
    {
        if (answer.status == Status::feasible)  // in this norm it is farther
        {
            costs_.prepare(row, answer.distance);
            go_home();
            for (uint32_t axis = 0; axis < cells_.size(); ++axis)
                total_.set(axis, costs_.cell(axis, answer.cells[axis]));
            answer.distance = costs_.root(total_.value());
        }
        return false;
    }
    costs_.prepare(row, answer.distance);
    return true;
}

Total Search::home_total() const
{
    Total total(lattice_.n_axes(), norm_.is_maximum());
    for (size_t axis = 0; axis < lattice_.n_axes(); ++axis)
        total.set(axis, costs_.cell(axis, costs_.home(axis)));
    return total;
}

/// Where the map is decided all around the query, best first is all it takes. Else searches balls of growing radius:
/// each pass proves its ball empty or ends with the optimum, and a small ball is cheap because little is in reach.
void Search::deepen(Answer& answer)
{
    Candidate incumbent;
    try
    {
        if (!walk_best_first(answer.lower_bound))
        {
            incumbent = best_.found ? best_ : dive();
            search_outwards(incumbent, answer.lower_bound);
        }
        answer.status = best_.found ? Status::optimal : Status::infeasible;
    }
    catch (const Stopped&)
    {
        if (!best_.found)
            best_ = incumbent.found ? incumbent : any_answer();
        answer.status = best_.found ? Status::feasible : Status::unknown;
    }
    answer.distance = best_.found ? costs_.root(best_.total) : infinity;
    answer.label = best_.label;
    answer.cells = best_.cells;
    if (answer.status == Status::optimal || answer.status == Status::infeasible)
        answer.lower_bound = answer.distance;
}

/// Any wanted point of the decided map, by the near side first; none where an open leaf comes first.
Candidate Search::dive()
{
    is_diving_ = true;
    pass(Candidate{.total = infinity});
    is_diving_ = false;
    return best_;
}

/// Passes of growing radius up to the incumbent; `proven` follows the radius within which nothing is. The first pass
/// that finds anything finds the optimum.
void Search::search_outwards(Candidate& incumbent, double& proven)
{
    const double all = largest_total();
    double radius = incumbent.found ? std::max(costs_.root(incumbent.total) * first_radius, proven * growth)
                                    : first_radius_in_reach(proven);
    radius = std::max(radius, std::numeric_limits<double>::min());  // a share of the smallest number is 0
    for (;; radius *= growth)
    {
        if (!incumbent.found && evaluated_ > quick_search)
            incumbent = any_answer();
        const bool to_incumbent = incumbent.found && radius >= costs_.root(incumbent.total);
        const bool last = to_incumbent || !(costs_.raised(radius) < all);
        pass(last ? incumbent.found ? incumbent : Candidate{.total = infinity}
                  : Candidate{.total = costs_.raised(radius)});
        if (best_.found || last)
            return;
        proven = radius;
    }
}

/// Where nothing is known, halves the range of radii until the smallest at which bounds alone allow an answer.
double Search::first_radius_in_reach(double& proven)
{
    if (!may_hold_within(infinity))
        return infinity;
    double low = std::max(smallest_step(), proven), high = costs_.root(largest_total());
    while (high > low * fine_bracket)
    {
        const double middle = std::sqrt(low) * std::sqrt(high);
        if (!(low < middle && middle < high))
            break;
        if (may_hold_within(costs_.raised(middle)))
            high = middle;
        else
            low = proven = middle;
    }
    return high;
}

bool Search::may_hold_within(double cap)
{
    go_home();
    best_ = {.total = cap};
    if (total_.value() > cap)
        return false;
    Frame& top = frame(0);
    top.box = whole_box(lattice_);
    narrower_.clear();
    shrink(top.box);
    narrower_.start(top.state, top.box);
    ++evaluated_;
    return narrower_.may_hold(top.state, wanted_);
}

void Search::go_home()
{
    total_ = home_total();
    cells_ = costs_.homes();
}

double Search::smallest_step() const
{
    double step = infinity;
    for (size_t axis = 0; axis < lattice_.n_axes(); ++axis)
        for (uint32_t cell = 0; cell < lattice_.n_cells[axis]; ++cell)
            if (costs_.cell(axis, cell) > 0)
                step = std::min(step, costs_.cell(axis, cell));
    return costs_.root(step);
}

double Search::largest_total() const
{
    Total total(lattice_.n_axes(), norm_.is_maximum());
    for (size_t axis = 0; axis < lattice_.n_axes(); ++axis)
    {
        const auto first = &costs_.cell(axis, 0);
        total.set(axis, *std::max_element(first, first + lattice_.n_cells[axis]));
    }
    return total.value();
}

}  // namespace cfmaps
