#include "search.hpp"

#include <cmath>
#include <utility>

namespace cfmaps
{
namespace
{
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double first_radius = 0.25; // of the way to the first answer found
constexpr double growth = 1.4;        // of the radius from pass to pass
constexpr double fine_bracket = 1.3;   // around the first radius of a cold search
constexpr size_t dive_patience = 4096;
} // namespace

Search::Search(const Forest& forest, const Nodes& nodes, const Norm& norm, const Norm& maximum)
    : forest_(forest), lattice_(forest.lattice), nodes_(nodes), norm_(norm), costs_(lattice_, norm),
      total_(lattice_.n_axes(), norm.is_maximum()), narrower_(forest), cells_(lattice_.n_axes())
{
    if (norm.power != 1 && norm.power != 2 && !norm.is_maximum())
        scout_ = std::make_unique<Search>(forest, nodes, maximum, maximum);
}

Answer Search::nearest(const double* row, int32_t target, Clock::time_point deadline, Limits& limits)
{
    limits_ = &limits;
    deadline_ = deadline;
    visited_ = evaluated_ = 0;
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
    answer = scout_->nearest(row, wanted_.all_others ? undecided : static_cast<int32_t>(wanted_.label), deadline_, *limits_);
    if (answer.status != Status::optimal || answer.distance == 0)
    {
        if (answer.status == Status::feasible) // in this norm it is farther
        {
            costs_.prepare(row, answer.distance);
            total_ = home_total();
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

/// Searches balls of growing radius: each pass proves its ball empty or ends with the optimum, and a small ball is
/// cheap because little is in reach. The first pass that finds anything finds the optimum.
void Search::deepen(Answer& answer)
{
    Candidate incumbent;
    try
    {
        if (nodes_.read(0).is_open())
            deepen_cold(answer.lower_bound);
        else
            deepen_warm(incumbent, answer.lower_bound);
        answer.status = best_.found ? Status::optimal : Status::infeasible;
    }
    catch (const Stopped&)
    {
        if (!best_.found)
            best_ = incumbent;
        answer.status = best_.found ? Status::feasible : Status::unknown;
    }
    answer.distance = best_.found ? costs_.root(best_.total) : infinity;
    answer.label = best_.label;
    answer.cells = best_.cells;
    if (answer.status == Status::optimal || answer.status == Status::infeasible)
        answer.lower_bound = answer.distance;
}

void Search::deepen_cold(double& proven)
{
    double high = costs_.root(largest_total()), low = smallest_step();
    if (!may_hold_within(infinity)) { best_ = {}; return; }
    while (high > low * fine_bracket)
    {
        const double middle = std::sqrt(low * high);
        (may_hold_within(costs_.raised(middle)) ? high : low) = middle;
    }
    is_exhausted_ = false;
    proven = low;
    search_outwards(high, infinity, proven);
    if (!best_.found)
        pass(Candidate{.total = infinity});
}

bool Search::may_hold_within(double cap)
{
    best_ = {.total = cap};
    total_ = home_total();
    for (size_t axis = 0; axis < cells_.size(); ++axis)
        cells_[axis] = costs_.home(axis);
    Frame& top = frame(0);
    top.box = whole_box(lattice_);
    narrower_.clear();
    shrink(top.box);
    narrower_.start(top.state, top.box);
    ++evaluated_;
    return narrower_.may_hold(top.state, wanted_);
}

void Search::deepen_warm(Candidate& incumbent, double& proven)
{
    incumbent = dive();
    if (!incumbent.found)
        search_outwards(smallest_step(), infinity, proven);
    else if (incumbent.total > 0)
        search_outwards(costs_.root(incumbent.total) * first_radius, costs_.root(incumbent.total), proven);
    if (!best_.found && !is_exhausted_)
        pass(incumbent);
}

/// Any wanted point, by the near side first. Without one the space is exhausted or so was the patience.
Candidate Search::dive()
{
    any_will_do_ = true;
    is_exhausted_ = false;
    first_tick_ = ticks_;
    try
    {
        pass(Candidate{.total = infinity});
        is_exhausted_ = !best_.found;
    }
    catch (const OutOfPatience&)
    {
    }
    any_will_do_ = false;
    if (best_.found && best_.total > 0)
        return std::exchange(best_, {});
    return best_;
}

/// Passes of growing radius below `end`; `proven` follows the radius within which nothing is.
void Search::search_outwards(double radius, double end, double& proven)
{
    const double all = largest_total();
    while (!is_exhausted_ && radius < end && costs_.raised(radius) < all)
    {
        pass(Candidate{.total = costs_.raised(radius)});
        if (best_.found)
            return;
        proven = radius;
        radius *= growth;
    }
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

/// Finds the best wanted point among those that cost at most the bound's total and, if the bound is a point, beat it.
void Search::pass(const Candidate& bound)
{
    best_ = bound;
    total_ = home_total();
    words_ = whole_box(lattice_);
    for (size_t axis = 0; axis < cells_.size(); ++axis)
        cells_[axis] = costs_.home(axis);
    waiting_.clear();
    trail_.clear();
    if (!(nodes_.read(0).classes() & wanted_bits_) || total_.value() > best_.total)
        return;
    uint32_t id = 0;
    do
        walk_down(nodes_.read(id));
    while (!(any_will_do_ && best_.found) && next_waiting(id));
}

/// Follows the near sides from a node to a leaf and leaves the far sides that may win waiting.
void Search::walk_down(Node node)
{
    while (node.is_inner())
    {
        ++visited_;
        tick();
        const Test& test = lattice_.tests[node.test()];
        const bool right = goes_right(test, cells_[test.axis]);
        const uint32_t far_id = node.child() + !right;
        const Node near = nodes_.read(node.child() + right), far = nodes_.read(far_id);
        if (far.classes() & wanted_bits_)
            wait_for_far(far_id, node.test(), !right, far.child());
        if (!(near.classes() & wanted_bits_))
            return;
        if (!test.ordered)
            take_step(node.test(), right);
        node = near;
    }
    if (node.is_open())
        enter_open();
    else if (wanted_.accepts(node.label()))
        offer(static_cast<int32_t>(node.label()));
}

/// The nearest cell on a side that the way's own cell is not on.
uint32_t Search::far_cell(uint32_t test, bool right) const
{
    const auto& [axis, rank, first_cell, ordered] = lattice_.tests[test];
    if (ordered)
        return rank + right;
    const size_t first = lattice_.word_start[axis];
    uint32_t best = lattice_.n_cells[axis];
    for (uint32_t cell = 0; cell < lattice_.n_cells[axis]; ++cell)
    {
        const bool in_set = lattice_.sets[rank][cell / 64] >> (cell % 64) & 1;
        const bool is_left = words_[first + cell / 64] >> (cell % 64) & 1;
        if (is_left && in_set != right && (best == lattice_.n_cells[axis] || costs_.cell(axis, cell) < costs_.cell(axis, best)))
            best = cell;
    }
    return best;
}

void Search::wait_for_far(uint32_t id, uint32_t test, bool right, uint32_t children)
{
    const Test& asked = lattice_.tests[test];
    const uint32_t cell = far_cell(test, right);
    const double cost = costs_.all()[asked.first_cell + cell];
    if (cost <= best_.total && may_win(total_.with(asked.axis, cost), asked.axis, cost, cell))
    {
        nodes_.prefetch(children);
        waiting_.push_back({id, test, cell, right, trail_.size()});
    }
}

bool Search::next_waiting(uint32_t& id)
{
    while (!waiting_.empty())
    {
        const Waiting next = waiting_.back();
        waiting_.pop_back();
        undo_to(next.trail);
        const uint32_t axis = lattice_.tests[next.test].axis;
        const double cost = costs_.cell(axis, next.cell);
        if (!may_win(total_.with(axis, cost), axis, cost, next.cell))
            continue;
        take_step(next.test, next.right);
        if (cells_[axis] != next.cell)
            move(axis, next.cell);
        id = next.id;
        return true;
    }
    return false;
}

/// Records what stands on an axis before it changes.
void Search::move(uint32_t axis, uint32_t cell)
{
    trail_.push_back({axis, cells_[axis], no_word, 0});
    cells_[axis] = cell;
    total_.set(axis, costs_.cell(axis, cell));
}

/// Keeps one side of a test of a categorical axis; an ordered axis has its cell for that.
void Search::take_step(uint32_t test, bool right)
{
    const auto& [axis, rank, first_cell, ordered] = lattice_.tests[test];
    if (lattice_.is_ordered(axis))
        return;
    const auto& set = lattice_.sets[rank];
    for (size_t word = 0; word < set.size(); ++word)
    {
        uint64_t& cells = words_[lattice_.word_start[axis] + word];
        trail_.push_back({axis, cells_[axis], lattice_.word_start[axis] + word, cells});
        cells &= right ? ~set[word] : set[word];
    }
}

void Search::undo_to(size_t trail)
{
    for (; trail_.size() > trail; trail_.pop_back())
    {
        const Step& step = trail_.back();
        if (step.word != no_word)
            words_[step.word] = step.before;
        else
        {
            cells_[step.axis] = step.cell;
            total_.set(step.axis, costs_.cell(step.axis, step.cell));
        }
    }
}

/// With equal totals, costs and cells decide, axis by axis: those of a box bound those of all its points.
bool Search::may_win_tie(uint32_t axis, double cost, uint32_t cell) const
{
    for (uint32_t other = 0; other < cells_.size(); ++other)
    {
        const double here = other == axis ? cost : total_.cost(other);
        if (here != best_.costs[other])
            return here < best_.costs[other];
    }
    for (uint32_t other = 0; other < cells_.size(); ++other)
    {
        const uint32_t here = other == axis ? cell : cells_[other];
        if (here != best_.cells[other])
            return here < best_.cells[other];
    }
    return false;
}

void Search::offer(int32_t label)
{
    const auto costs = total_.costs();
    best_.found = true;
    best_.label = label;
    best_.total = total_.value();
    best_.costs.assign(costs.begin(), costs.end());
    best_.cells = cells_;
}

void Search::look_up()
{
    if (limits_->check(deadline_))
        throw Stopped{};
    if (any_will_do_ && ticks_ - first_tick_ > dive_patience)
        throw OutOfPatience{};
}
} // namespace cfmaps
