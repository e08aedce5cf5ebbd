#pragma once
// What is still open in a box: for each tree that can still give different values there, the leaves within reach.
// Narrowing a box is one AND, two bit scans and two loads a live tree; a tree with one value left leaves the list.

#include "forest.hpp"

namespace cfmaps
{
/// A tree that can still give different values in a box.
struct LiveTree
{
    Leaves leaves;
    uint32_t piece;
    int32_t spread;  // largest minus smallest value, over all lanes
    uint32_t node;   // inner node of the piece above which nothing splits the box
};

/// The live trees over a box, and the bounds of every lane.
struct State
{
    uint32_t n_live = 0;
    std::vector<LiveTree> live;
    std::vector<int32_t> lanes;  // per lane the sum of trees with one value, then the least and most the others add

    void reserve(size_t n_trees, size_t n_lanes);
    int32_t* constant() { return lanes.data(); }
    int32_t* low() { return lanes.data() + lanes.size() / 3; }
    int32_t* high() { return lanes.data() + 2 * (lanes.size() / 3); }
    int64_t least(size_t lane) const { return int64_t{lanes[lane]} + lanes[lanes.size() / 3 + lane]; }
    int64_t most(size_t lane) const { return int64_t{lanes[lane]} + lanes[2 * (lanes.size() / 3) + lane]; }
};

/// The classes a search accepts: one, or every class but one.
struct Wanted
{
    uint32_t label;
    bool all_others = false;
    bool accepts(uint32_t other) const { return (other == label) != all_others; }
};

constexpr int32_t undecided = -1;

/// Narrows states from box to box and reads them. One per thread: it owns the scratch rows.
class Narrower
{
public:
    explicit Narrower(const Forest& forest);

    /// The state of all trees over a box.
    void start(State& state, ConstBox box);

    // Rows collected here are what the next `apply` narrows by.
    void clear() { n_rows_ = 0; }
    void add_axis(ConstBox box, size_t axis);
    void add_side(ConstBox box, uint32_t test, bool right);
    /// The state over `box`, from that of a larger one; `to` may be `from`.
    void apply(const State& from, State& to, ConstBox box);

    /// The test with the largest total spread among the first undecided nodes of the live trees; -1 without live trees.
    int32_t best_cut(State& state);

    bool surely_beats(const State& state, uint32_t winner, uint32_t loser) const;
    bool surely_beaten(const State& state, uint32_t label) const;
    bool surely_wins(const State& state, uint32_t label) const;
    /// The class of the whole box, or `undecided`.
    int32_t winner(const State& state) const;
    /// Whether some point of the box may have a wanted class; whether all have.
    bool may_hold(const State& state, Wanted wanted) const;
    bool surely_holds(const State& state, Wanted wanted) const;
    /// How far a wanted class leads the others, halfway between its bounds.
    int64_t lead(const State& state, Wanted wanted) const;

    const Forest& forest() const { return forest_; }

private:
    uint32_t least_band(const State& state) const;
    uint32_t most_band(const State& state) const;
    int64_t lead_of_band(const State& state, uint32_t label) const;
    int64_t least_lead(const State& state, uint32_t winner, uint32_t loser) const;
    void add_row(const Leaves* row);
    void narrow(const State& from, State& to, const Leaves* row);
    void descend(LiveTree& tree, ConstBox box) const;
    void follow_links(State& state, ConstBox box);

    const Forest& forest_;
    size_t n_rows_ = 0;
    const Leaves* only_row_ = nullptr;
    std::vector<Leaves> joined_, category_;
    std::vector<int64_t> weight_;  // per test, zero between calls
    std::vector<int32_t> extreme_;
};
}  // namespace cfmaps
