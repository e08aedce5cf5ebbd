// An answer without proof, for searches that take long or must stop: found by descending to where the wanted class
// leads, then taking back every change that the class does not need.

#include "search.hpp"

namespace cfmaps
{
namespace
{
constexpr int most_rounds = 4;
}

Candidate Search::any_answer()
{
    best_ = {};
    std::vector<uint64_t> box = whole_box(lattice_);
    go_home();
    if (!descend_to_wanted(box))
        return {};
    for (uint32_t axis = 0; axis < cells_.size(); ++axis)
        move(axis, costs_.nearest(box, axis));
    pull_home();
    offer(undecided);
    trail_.clear();
    return best_;
}

/// Follows the sides on which the wanted class may lead most, to a box that holds nothing else.
bool Search::descend_to_wanted(std::vector<uint64_t>& box)
{
    Frame &here = frame(0), &left = frame(1), &right = frame(2);
    narrower_.start(here.state, box);
    here.box = box;
    while (!narrower_.surely_holds(here.state, wanted_))
    {
        const int32_t cut =
            here.state.n_live > 0 ? narrower_.best_cut(here.state) : judge(forest_.trees, lattice_, here.box).cut;
        if (cut < 0 || !narrower_.may_hold(here.state, wanted_))
            break;
        for (Frame* side : {&left, &right})
        {
            side->box = here.box;
            keep_side(lattice_, side->box, cut, side == &right);
            narrower_.clear();
            narrower_.add_side(side->box, cut, side == &right);
            narrower_.apply(here.state, side->state, side->box);
        }
        const bool goes_left = narrower_.lead(left.state, wanted_) >= narrower_.lead(right.state, wanted_);
        std::swap(here, goes_left ? left : right);
    }
    box = here.box;
    for (uint32_t axis = 0; axis < cells_.size(); ++axis)
        cells_[axis] = costs_.nearest(box, axis);
    const bool found = is_wanted_here();
    cells_ = costs_.homes();
    return found;
}

/// Takes changes back, the dearest first, while the class stays wanted.
void Search::pull_home()
{
    std::vector<uint32_t> axes(cells_.size());
    for (uint32_t axis = 0; axis < axes.size(); ++axis)
        axes[axis] = axis;
    std::sort(axes.begin(), axes.end(), [this](uint32_t a, uint32_t b) { return total_.cost(a) > total_.cost(b); });
    bool moved = true;
    for (int round = 0; moved && round < most_rounds; ++round)
    {
        moved = false;
        for (uint32_t axis : axes)
            moved |= cells_[axis] != costs_.home(axis) && pull_home(axis);
    }
}

/// Takes one change back as far as halving the way finds the class still wanted; true when it gave way.
bool Search::pull_home(uint32_t axis)
{
    const uint32_t start = cells_[axis];
    uint32_t wanted = start, unwanted = costs_.home(axis);
    move(axis, unwanted);
    if (is_wanted_here())
        return true;
    while (lattice_.is_ordered(axis) && (wanted > unwanted ? wanted - unwanted : unwanted - wanted) > 1)
    {
        const uint32_t middle = wanted / 2 + unwanted / 2 + (wanted % 2 + unwanted % 2) / 2;
        move(axis, middle);
        (is_wanted_here() ? wanted : unwanted) = middle;
    }
    move(axis, wanted);
    return wanted != start;
}

bool Search::is_wanted_here()
{
    std::vector<double> point(row_, row_ + n_columns_);
    lattice_.move(cells_, point.data());
    return wanted_.accepts(forest_.trees.label(point.data()));
}
}  // namespace cfmaps
