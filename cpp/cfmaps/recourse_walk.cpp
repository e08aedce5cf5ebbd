// Walking the map, and the boxes below its open leaves.

#include "recourse.hpp"

namespace cfmaps
{
void Recourse::walk(uint32_t id)
{
    const Node node = nodes_.read(id);
    if (!(node.classes() & wanted_bits_))
        return;
    if (node.is_leaf())
    {
        if (!wanted_.accepts(node.label()))
            return;
        return demands_.empty() ? settle() : enter_open(1);
    }
    if (node.is_open())
        return enter_open(0);
    ++visited_;
    tick();
    const Test& test = lattice_.tests[node.test()];
    const uint32_t cell = slots_[test.axis].cell[0][ranges_[test.axis].near];
    const bool right = test.ordered ? cell > test.rank : !(lattice_.sets[test.rank][cell / 64] >> (cell % 64) & 1);
    walk_side(node, right);
    walk_side(node, !right);
}

void Recourse::walk_side(const Node& node, bool right)
{
    const size_t trail = trail_.size();
    if (nodes_.read(node.child() + right).classes() & wanted_bits_ && take_side(0, node.test(), right))
        walk(node.child() + right);
    undo_to(trail);
}

/// Keeps the slots on one side of a test; false when nothing that may win is left.
bool Recourse::take_side(size_t forest, uint32_t test, bool right)
{
    const Lattice& lattice = forest == 0 ? lattice_ : demands_[forest - 1].forest->lattice;
    const auto& [axis, rank, first_cell, ordered] = lattice.tests[test];
    if (!ordered)
        return keep_categories(axis, [&](size_t word)
                               { return right ? ~lattice.sets[rank][word] : lattice.sets[rank][word]; });
    const Range& range = ranges_[axis];
    const uint32_t after = slots_[axis].after(forest, rank, range.lo, range.hi);
    if (right ? after > range.hi : after == range.lo)
        return false;
    if (right ? after == range.lo : after > range.hi)
        return true;
    return right ? keep_range(axis, after, range.hi) : keep_range(axis, range.lo, after - 1);
}

Recourse::Frame& Recourse::frame(size_t depth)
{
    while (frames_.size() <= depth)  // a deque: frames in use stay where they are
        frames_.emplace_back();
    return frames_[depth];
}

/// Goes on where the map is open, or decided (`settled`) but further forests have yet to speak.
void Recourse::enter_open(uint32_t settled)
{
    if (is_diving_ && settled == 0)
        throw Enough{};
    const size_t trail = trail_.size();
    shrink();
    Frame& top = frame(0);
    top.settled = settled;
    top.box.resize(narrower_.size());
    top.state.resize(narrower_.size());
    for (size_t forest = 0; forest < narrower_.size(); ++forest)
        if (!(settled >> forest & 1))
        {
            write_box(forest, top.box[forest]);
            narrower_[forest].clear();
            narrower_[forest].start(top.state[forest], top.box[forest]);
        }
    explore(0);
    undo_to(trail);
}

void Recourse::write_box(size_t forest, std::vector<uint64_t>& box) const
{
    const Lattice& lattice = forest == 0 ? lattice_ : demands_[forest - 1].forest->lattice;
    box.resize(lattice.n_words());
    for (size_t axis = 0; axis < slots_.size(); ++axis)
    {
        const auto& cells = slots_[axis].cell[forest];
        const size_t first = lattice.word_start[axis];
        if (is_ordered(axis))
            box[first] = interval(cells[ranges_[axis].lo], cells[ranges_[axis].hi]);
        else
            std::copy_n(words_.begin() + first_word_[axis], lattice.word_start[axis + 1] - first, box.begin() + first);
    }
}

void Recourse::explore(size_t depth)
{
    Frame& here = frame(depth);
    ++evaluated_;
    tick();
    if (!decide(here))
        return;
    size_t forest = 0;
    while (here.settled >> forest & 1)
        ++forest;
    if (forest == narrower_.size())
        return settle();
    const int32_t cut = cut_of(here, forest);
    if (cut < 0)
        return here.settled >> forest & 1 ? explore(depth) : void();
    const Lattice& lattice = narrower_[forest].forest().lattice;
    const Test& test = lattice.tests[cut];
    const uint32_t cell = slots_[test.axis].cell[forest][ranges_[test.axis].near];
    const bool right = test.ordered ? cell > test.rank : !(lattice.sets[test.rank][cell / 64] >> (cell % 64) & 1);
    explore_side(forest, cut, right, depth);
    explore_side(forest, cut, !right, depth);
}

/// Notes which forests say what is wanted all over the box; false when one of them nowhere does.
bool Recourse::decide(Frame& here)
{
    for (size_t forest = 0; forest < narrower_.size(); ++forest)
    {
        if (here.settled >> forest & 1)
            continue;
        const Wanted wanted = forest == 0 ? wanted_ : demands_[forest - 1].wanted;
        if (!narrower_[forest].may_hold(here.state[forest], wanted))
            return false;
        if (narrower_[forest].surely_holds(here.state[forest], wanted))
            here.settled |= 1u << forest;
    }
    return true;
}

/// The next cut; -1 when the model's own arithmetic decided the whole box: then it is settled, or out.
int32_t Recourse::cut_of(Frame& here, size_t forest)
{
    if (here.state[forest].n_live > 0)
        return narrower_[forest].best_cut(here.state[forest]);
    const Forest& asked = narrower_[forest].forest();
    const Wanted wanted = forest == 0 ? wanted_ : demands_[forest - 1].wanted;
    const Verdict verdict = judge(asked.trees, asked.lattice, here.box[forest]);
    const auto accepts = [&](uint32_t label) { return wanted.accepts(label); };
    if (std::all_of(verdict.possible.begin(), verdict.possible.end(), accepts))
    {
        here.settled |= 1u << forest;
        return -1;
    }
    return std::any_of(verdict.possible.begin(), verdict.possible.end(), accepts) ? verdict.cut : -1;
}

void Recourse::explore_side(size_t forest, uint32_t test, bool right, size_t depth)
{
    const size_t trail = trail_.size();
    if (take_side(forest, test, right))
    {
        shrink();
        narrow(frame(depth), frame(depth + 1));
        explore(depth + 1);
    }
    undo_to(trail);
}

/// Brings the states of all forests that have yet to speak up to what is left.
void Recourse::narrow(const Frame& from, Frame& to)
{
    to.settled = from.settled;
    to.box.resize(from.box.size());
    to.state.resize(from.state.size());
    for (size_t forest = 0; forest < narrower_.size(); ++forest)
    {
        if (from.settled >> forest & 1)
            continue;
        Narrower& narrower = narrower_[forest];
        const Lattice& lattice = narrower.forest().lattice;
        write_box(forest, to.box[forest]);
        narrower.clear();
        for (size_t axis = 0; axis < slots_.size(); ++axis)
        {
            const auto first = lattice.word_start[axis], last = lattice.word_start[axis + 1];
            if (!std::equal(to.box[forest].begin() + first, to.box[forest].begin() + last,
                            from.box[forest].begin() + first))
                narrower.add_axis(to.box[forest], axis);
        }
        narrower.apply(from.state[forest], to.state[forest], to.box[forest]);
    }
}

/// Takes from every axis the slots that cost more than the best answer, or than the changes allowed, leave room for.
void Recourse::shrink()
{
    // Room is rounded up: a sum of n terms is off by at most n units in the last place.
    const double slack = norm_.is_maximum() ? 0 : best_.total * 0x1p-50 * static_cast<double>(slots_.size() + 2);
    const double room = best_.total - total_.value() + slack;
    for (uint32_t axis = 0; axis < slots_.size(); ++axis)
    {
        if (changed_ == rules_.most_changes && ranges_[axis].near == slots_[axis].kept && !ranges_[axis].may_change)
            keep_as_is(axis);
        else if (best_.total < std::numeric_limits<double>::infinity())
            shrink_axis(axis, norm_.is_maximum() ? best_.total : total_.cost(axis) + room);
    }
}

void Recourse::keep_as_is(uint32_t axis)
{
    if (!is_ordered(axis))
        keep_category(axis, ranges_[axis].near);
    else if (ranges_[axis].low != ranges_[axis].high)
        keep_value(axis, true);
}

void Recourse::shrink_axis(uint32_t axis, double most)
{
    const std::vector<double>& cost = slots_[axis].cost;
    const auto is_dear = [most](double price) { return price > most; };
    if (!is_ordered(axis))
    {
        for (uint32_t category = 0; category < slots_[axis].size(); ++category)
            if (has_category(axis, category) && is_dear(cost[category]))
                keep_categories(axis, [category](size_t word)
                                { return word == category / 64 ? ~(uint64_t{1} << (category % 64)) : ~uint64_t{0}; });
        return;
    }
    const Range range = ranges_[axis];
    if (!is_dear(cost[range.lo]) && !is_dear(cost[range.hi]))
        return;
    const auto near = cost.begin() + range.near;
    const uint32_t lo = std::partition_point(cost.begin() + range.lo, near, is_dear) - cost.begin();
    const uint32_t hi =
        std::partition_point(near + 1, cost.begin() + range.hi + 1, [&](double price) { return !is_dear(price); }) -
        cost.begin() - 1;
    keep_range(axis, lo, hi);
}
}  // namespace cfmaps
