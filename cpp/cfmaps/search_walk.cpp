// The search in the decided part of the map: near sides first, far sides while they may win.

#include "search.hpp"

namespace cfmaps
{
/// Finds the best wanted point among those that cost at most the bound's total and, if the bound is a point, beat it.
void Search::pass(const Candidate& bound)
{
    best_ = bound;
    start_walk();
    waiting_.clear();
    if (!(nodes_.read(0).classes() & wanted_bits_) || total_.value() > best_.total)
        return;
    uint32_t id = 0;
    do
        walk_down(id);
    while (!(is_diving_ && best_.found) && next_waiting(id));
}

void Search::start_walk()
{
    go_home();
    words_ = whole_box(lattice_);
    trail_.clear();
}

/// Follows the near sides from a node to a leaf and leaves the far sides that may win waiting.
void Search::walk_down(uint32_t id)
{
    Node node = nodes_.read(id);
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
        id = node.child() + right;
        node = near;
    }
    if (node.is_open())
        enter_open(id);
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
        if (is_left && in_set != right &&
            (best == lattice_.n_cells[axis] || costs_.cell(axis, cell) < costs_.cell(axis, best)))
            best = cell;
    }
    if (best == lattice_.n_cells[axis])
        throw CorruptMap("a node of the map parts nothing");
    return best;
}

void Search::wait_for_far(uint32_t id, uint32_t test, bool right, uint32_t children)
{
    const Test& asked = lattice_.tests[test];
    const uint32_t cell = far_cell(test, right);
    const double cost = costs_.all()[asked.first_cell + cell];
    if (cost <= best_.total && may_win(total_.with(asked.axis, cost), asked.axis, cell))
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
        if (!may_win(total_.with(axis, cost), axis, next.cell))
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

/// With equal totals, costs and then steps decide, axis by axis: those of a box bound those of all its points.
bool Search::may_win_tie(const uint32_t* cells, uint32_t axis, uint32_t cell) const
{
    for (uint32_t other = 0; other < cells_.size(); ++other)
    {
        const double here = costs_.cell(other, other == axis ? cell : cells[other]);
        if (here != best_.costs[other])
            return here < best_.costs[other];
    }
    for (uint32_t other = 0; other < cells_.size(); ++other)
    {
        const uint32_t here = other == axis ? cell : cells[other];
        if (here != best_.cells[other])
            return costs_.steps(other, here) < costs_.steps(other, best_.cells[other]);
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
}
}  // namespace cfmaps
