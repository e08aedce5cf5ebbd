// Answers that stand wherever their numbers move by a margin: the box within reach of one holds nothing unwanted.

#include "recourse.hpp"

namespace cfmaps
{
/// Whether something unwanted is within reach of a point; then what leaves it out of reach is tried, axis by axis.
bool Recourse::branch_on_reach(const std::vector<double>& values)
{
    if (rules_.margins.empty())
        return false;
    if (reach_frames_.empty())
        reach_frames_.emplace_back();
    Frame& top = reach_frames_[0];
    top.box.assign(1, std::vector<uint64_t>(lattice_.n_words(), 0));
    top.state.resize(1);
    for (uint32_t axis = 0; axis < slots_.size(); ++axis)
    {
        const size_t first = lattice_.word_start[axis];
        if (is_ordered(axis))
        {
            const uint32_t slot = slots_[axis].of(values[axis]);
            top.box[0][first] = interval(slots_[axis].reach_low[slot], slots_[axis].reach_high[slot]);
            continue;
        }
        const size_t category = static_cast<size_t>(values[axis]);
        top.box[0][first + category / 64] = uint64_t{1} << (category % 64);
    }
    narrower_[0].clear();
    narrower_[0].start(top.state[0], top.box[0]);
    if (!has_unwanted(0))
        return false;
    leave_reach(std::vector<uint64_t>(reach_frames_[0].box[0]));
    return true;
}

/// Looks for a box without anything wanted; leaves it in the first frame.
bool Recourse::has_unwanted(size_t depth)
{
    tick();
    ++evaluated_;
    Frame& here = reach_frames_[depth];
    here.settled = 0;
    if (narrower_[0].surely_holds(here.state[0], wanted_))
        return false;
    if (narrower_[0].may_hold(here.state[0], wanted_))
    {
        const int32_t cut = cut_of(here, 0);
        if (here.settled != 0)
            return false;
        if (cut >= 0)
        {
            while (reach_frames_.size() <= depth + 1)
                reach_frames_.emplace_back();
            Frame& below = reach_frames_[depth + 1];
            below.state.resize(1);
            for (const bool right : {false, true})
            {
                below.box = here.box;
                keep_side(lattice_, below.box[0], cut, right);
                narrower_[0].clear();
                narrower_[0].add_side(below.box[0], cut, right);
                narrower_[0].apply(here.state[0], below.state[0], below.box[0]);
                if (has_unwanted(depth + 1))
                    return true;
            }
            return false;
        }
    }
    reach_frames_[0].box[0] = std::vector<uint64_t>(here.box[0]);
    return true;
}

/// An answer whose reach misses the box misses it on some axis.
void Recourse::leave_reach(ConstBox unwanted)
{
    for (uint32_t axis = 0; axis < slots_.size(); ++axis)
    {
        const size_t trail = trail_.size();
        const size_t first = lattice_.word_start[axis];
        const Slots& slots = slots_[axis];
        if (!is_ordered(axis))
        {
            if (keep_categories(axis, [&](size_t word) { return ~unwanted[first + word]; }))
                settle();
            undo_to(trail);
            continue;
        }
        const Range range = ranges_[axis];
        const auto below = std::lower_bound(slots.reach_high.begin() + range.lo,
                                            slots.reach_high.begin() + range.hi + 1, low_end(unwanted[first]));
        const auto above = std::upper_bound(slots.reach_low.begin() + range.lo, slots.reach_low.begin() + range.hi + 1,
                                            high_end(unwanted[first]));
        const uint32_t last = static_cast<uint32_t>(below - slots.reach_high.begin());
        const uint32_t next = static_cast<uint32_t>(above - slots.reach_low.begin());
        if (last > range.lo && keep_range(axis, range.lo, last - 1))
            settle();
        undo_to(trail);
        if (next <= range.hi && keep_range(axis, next, range.hi))
            settle();
        undo_to(trail);
    }
}
}  // namespace cfmaps
