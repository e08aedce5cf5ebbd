#pragma once
// The model itself: trees as they were read, and what they predict, in the model's own arithmetic.

#include "lattice.hpp"

namespace cfmaps
{
enum NodeTest : int32_t
{
    is_leaf = -1,
    always_left = -2,
    always_right = -3,
};

/// A node as it was read, and what the lattice makes of its test.
struct TreeNode
{
    double threshold;
    int32_t feature, left, right;
    int32_t test;  // index of the lattice's test, or a NodeTest
};

/// All trees in flat arrays. Scores are (init + the leaves' values in tree order) / divisor; the first largest wins.
struct Trees
{
    std::vector<TreeNode> nodes;
    std::vector<int32_t> roots;
    std::vector<double> value;  // n_scores per node
    std::vector<double> init;
    double divisor = 1;
    bool single = true;  // numbers are rounded to float32 before they are compared

    size_t n_scores() const { return init.size(); }
    const double* scores_of(size_t node) const { return &value[node * n_scores()]; }

    /// The class of a row whose numbers are on the model's grid.
    uint32_t label(const double* row) const;
};

/// What is certain about a box in the model's own arithmetic.
struct Verdict
{
    std::vector<uint32_t> possible;  // classes that some point of the box may have, ascending
    int32_t cut = -1;                // a test that separates different leaves; -1 when one class is left
};

/// Bounds every score over the box by sums of extremes in the model's order: rounding to nearest is monotone, so
/// the bounds hold for the computed scores, ties included.
Verdict judge(const Trees& trees, const Lattice& lattice, ConstBox box);
}  // namespace cfmaps
