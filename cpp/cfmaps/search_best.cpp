// The search of a map that is decided wherever the query looks: best first, so that only what is nearer than the
// answer is visited, and once.

#include "search.hpp"

#include <algorithm>

namespace cfmaps
{
namespace
{
constexpr auto farther = [](const auto& a, const auto& b) { return a.total > b.total; };
}  // namespace

/// Visits branches by their total until none can win. Stops at an open leaf: all that was popped before it is no
/// answer, so its total bounds every answer from below.
bool Search::walk_best_first(double& proven)
{
    best_ = {.total = std::numeric_limits<double>::infinity()};
    start_walk();
    branches_.clear();
    free_places_.clear();
    n_places_ = 0;
    Branch branch{total_.value(), 0, 0};
    if (!(nodes_.read(0).classes() & wanted_bits_))
        return true;
    do
        if (!follow(branch.id))
        {
            proven = costs_.root(branch.total);
            return false;
        }
    while (next_branch(branch));
    return true;
}

/// Follows the near sides from a node to a leaf, and keeps the far sides for later; false at an open leaf.
bool Search::follow(uint32_t id)
{
    Node node = nodes_.read(id);
    while (node.is_inner())
    {
        ++visited_;
        tick();
        const Test& test = lattice_.tests[node.test()];
        const bool right = goes_right(test, cells_[test.axis]);
        const Node near = nodes_.read(node.child() + right), far = nodes_.read(node.child() + !right);
        nodes_.prefetch(near.child());
        if (far.classes() & wanted_bits_ && add_branch(node.child() + !right, node.test(), !right))
            nodes_.prefetch(far.child());
        if (!(near.classes() & wanted_bits_))
            return true;
        if (!test.ordered)
            take_step(node.test(), right);
        id = node.child() + right;
        node = near;
    }
    if (node.is_leaf() && wanted_.accepts(node.label()))
        offer(static_cast<int32_t>(node.label()));
    return !node.is_open();
}

bool Search::add_branch(uint32_t id, uint32_t test, bool right)
{
    const Test& asked = lattice_.tests[test];
    const uint32_t cell = far_cell(test, right);
    const double total = total_.with(asked.axis, costs_.all()[asked.first_cell + cell]);
    if (total > best_.total)
        return false;
    const uint32_t place = keep_way();
    ways_[place * cells_.size() + asked.axis] = cell;
    if (!asked.ordered)
        keep_side(lattice_, std::span(way_words_).subspan(place * words_.size(), words_.size()), test, right);
    branches_.push_back({total, id, place});
    if (!best_.found)
        std::push_heap(branches_.begin(), branches_.end(), farther);
    return true;
}

/// The nearest branch; once an answer is found only those as near are left to look at, in any order.
bool Search::next_branch(Branch& branch)
{
    while (!branches_.empty())
    {
        if (!best_.found)
            std::pop_heap(branches_.begin(), branches_.end(), farther);
        branch = branches_.back();
        branches_.pop_back();
        const uint32_t* way = &ways_[branch.place * cells_.size()];
        if (!best_.found || (branch.total == best_.total && may_win_tie(way, 0, way[0])))
        {
            stand_at(branch.place);
            return true;
        }
    }
    return false;
}

/// Copies where the way stands; places of branches that were taken up are used again, as they are in the cache.
uint32_t Search::keep_way()
{
    if (free_places_.empty())
    {
        free_places_.push_back(n_places_++);
        ways_.resize(std::max(ways_.size(), n_places_ * cells_.size()));
        if (lattice_.has_sets())
            way_words_.resize(std::max(way_words_.size(), n_places_ * words_.size()));
    }
    const uint32_t place = free_places_.back();
    free_places_.pop_back();
    std::copy(cells_.begin(), cells_.end(), &ways_[place * cells_.size()]);
    if (lattice_.has_sets())
        std::copy(words_.begin(), words_.end(), &way_words_[place * words_.size()]);
    return place;
}

void Search::stand_at(uint32_t place)
{
    std::copy_n(&ways_[place * cells_.size()], cells_.size(), cells_.begin());
    if (lattice_.has_sets())
        std::copy_n(&way_words_[place * words_.size()], words_.size(), words_.begin());
    total_.set_all([this](size_t axis) { return costs_.cell(axis, cells_[axis]); });
    trail_.clear();
    free_places_.push_back(place);
}
}  // namespace cfmaps
