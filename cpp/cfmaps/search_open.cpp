// The search below an open leaf of the map: boxes of its own, shrunk to the cells that the query can still afford.

#include "search.hpp"

namespace cfmaps
{
Search::Frame& Search::frame(size_t depth)
{
    while (frames_.size() <= depth)  // a deque: frames in use stay where they are
        frames_.emplace_back();
    return frames_[depth];
}

/// Goes on below the open leaf that the way ends at. Other threads may be growing the map: below that leaf by now,
/// which must not lead us further, or over it, where two leaves above it have become one.
void Search::enter_open(uint32_t open_id)
{
    if (is_diving_)
        return waiting_.clear();
    Frame& top = frame(0);
    top.box = whole_box(lattice_);
    for (uint32_t id = 0; id != open_id;)
    {
        const Node node = nodes_.read(id);
        if (node.is_leaf())
            return wanted_.accepts(node.label()) ? offer(static_cast<int32_t>(node.label())) : void();
        const Test& test = lattice_.tests[node.test()];
        const bool right = goes_right(test, cells_[test.axis]);
        expect_both_sides(lattice_, top.box, node.test());
        keep_side(lattice_, top.box, node.test(), right);
        id = node.child() + right;
    }
    narrower_.clear();
    shrink(top.box);
    narrower_.start(top.state, top.box);
    explore(0);
}

void Search::explore(size_t depth)
{
    Frame& here = frame(depth);
    ++evaluated_;
    tick();
    if (!narrower_.may_hold(here.state, wanted_))
        return;
    if (narrower_.surely_holds(here.state, wanted_))
        return offer(wanted_.all_others ? narrower_.winner(here.state) : static_cast<int32_t>(wanted_.label));
    const int32_t cut = here.state.n_live > 0 ? narrower_.best_cut(here.state) : cut_of_tie(here.box);
    if (cut < 0)
        return;
    const bool right = goes_right(lattice_.tests[cut], cells_[lattice_.tests[cut].axis]);
    explore_side(cut, right, depth);
    explore_side(cut, !right, depth);
}

/// Where integers cannot tell, the model's own arithmetic does: offers the box, drops it, or cuts it.
int32_t Search::cut_of_tie(ConstBox box)
{
    const Verdict verdict = judge(forest_.trees, lattice_, box);
    const auto wanted = [this](uint32_t label) { return wanted_.accepts(label); };
    if (std::all_of(verdict.possible.begin(), verdict.possible.end(), wanted))
    {
        offer(verdict.possible.size() == 1 ? static_cast<int32_t>(verdict.possible[0]) : undecided);
        return -1;
    }
    return std::any_of(verdict.possible.begin(), verdict.possible.end(), wanted) ? verdict.cut : -1;
}

void Search::explore_side(uint32_t test, bool right, size_t depth)
{
    const uint32_t axis = lattice_.tests[test].axis;
    Frame& here = frame(depth);
    Frame& below = frame(depth + 1);
    below.box = here.box;
    keep_side(lattice_, below.box, test, right);
    const uint32_t cell = costs_.nearest(below.box, axis);
    const double cost = costs_.cell(axis, cell);
    if (!may_win(total_.with(axis, cost), axis, cell))
        return;
    const size_t trail = trail_.size();
    if (cell != cells_[axis])
        move(axis, cell);
    narrower_.clear();
    narrower_.add_side(below.box, test, right);
    shrink(below.box);
    narrower_.apply(here.state, below.state, below.box);
    explore(depth + 1);
    undo_to(trail);
}

/// Takes from every axis the cells that cost more than the best answer leaves room for.
void Search::shrink(BoxSpan box)
{
    if (best_.total == std::numeric_limits<double>::infinity())
        return;
    // Room is rounded up: a sum of n terms is off by at most n units in the last place.
    const double slack = norm_.is_maximum() ? 0 : best_.total * 0x1p-50 * static_cast<double>(cells_.size() + 2);
    const double room = best_.total - total_.value() + slack;
    for (size_t axis = 0; axis < cells_.size(); ++axis)
    {
        const double most = norm_.is_maximum() ? best_.total : total_.cost(axis) + room;
        lattice_.is_ordered(axis) ? shrink_ordered(box, axis, most) : shrink_categorical(box, axis, most);
    }
}

void Search::shrink_ordered(BoxSpan box, size_t axis, double most)
{
    uint64_t& word = box[lattice_.word_start[axis]];
    const double* cost = &costs_.cell(axis, 0);
    uint32_t low = low_end(word), high = high_end(word);
    const uint32_t home = cells_[axis];
    if (cost[low] <= most && cost[high] <= most)
        return;
    const auto is_dear = [most](double price) { return price > most; };
    low = static_cast<uint32_t>(std::partition_point(cost + low, cost + home, is_dear) - cost);
    const auto is_fine = [most](double price) { return price <= most; };
    high = static_cast<uint32_t>(std::partition_point(cost + home + 1, cost + high + 1, is_fine) - cost) - 1;
    word = interval(low, high);
    narrower_.add_axis(box, axis);
}

void Search::shrink_categorical(BoxSpan box, size_t axis, double most)
{
    bool changed = false;
    const size_t first = lattice_.word_start[axis];
    for (uint32_t cell = 0; cell < lattice_.n_cells[axis]; ++cell)
        if (holds(lattice_, box, axis, cell) && costs_.cell(axis, cell) > most)
        {
            box[first + cell / 64] &= ~(uint64_t{1} << (cell % 64));
            changed = true;
        }
    if (changed)
        narrower_.add_axis(box, axis);
}
}  // namespace cfmaps
