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

/// How raw scores become a class.
enum class Rule : uint8_t
{
    argmax,   // the first largest
    bands,    // how many cuts the only score has reached
    softmax,  // the first largest of the softmax as computed, in which different scores may tie
};

/// What missing values and category sets add to the nodes; empty vectors where there are none.
struct Routes
{
    std::vector<uint8_t> missing_left;     // per node
    std::vector<int32_t> category_set;     // per node, -1 for a numeric test
    std::vector<std::vector<bool>> codes;  // per set, the codes going left

    bool goes_left(size_t node, double value, double threshold) const;
};

/// All trees in flat arrays. Raw scores are (init + the leaves' values in tree order) / divisor * scale + bias.
struct Trees
{
    std::vector<TreeNode> nodes;
    std::vector<int32_t> roots;
    std::vector<double> value;  // n_scores per node
    std::vector<double> init;
    double divisor = 1;
    bool single = true;  // numbers are rounded to float32 before they are compared
    Rule rule = Rule::argmax;
    bool single_sums = false;     // scores are added in float32
    bool single_softmax = false;  // and so is the softmax
    double scale = 1;
    std::vector<double> bias = {};  // per score; none is 0
    std::vector<double> cuts = {};  // bands: ascending sums, before divisor, scale and bias
    Routes routes = {};

    size_t n_scores() const { return init.size(); }
    uint32_t n_classes() const { return static_cast<uint32_t>(rule == Rule::bands ? cuts.size() + 1 : n_scores()); }
    double bias_of(size_t score) const { return bias.empty() ? 0.0 : bias[score]; }
    const double* scores_of(size_t node) const { return &value[node * n_scores()]; }

    /// The leaf of a tree that a row of the model's grid reaches.
    int32_t leaf_of(int32_t root, const double* row) const;
    /// The class of a row whose numbers are on the model's grid.
    uint32_t label(const double* row) const;
    /// Turns cuts of the raw score into those of the sum: the least sums whose raw scores reach them.
    void cut_sums();
};

/// The first largest of a softmax, computed as XGBoost (single) and LightGBM do.
uint32_t softmax_label(const double* scores, size_t n_scores, bool single);

/// What is certain about a box in the model's own arithmetic.
struct Verdict
{
    std::vector<uint32_t> possible;  // classes that some point of the box may have, ascending
    int32_t cut = -1;                // a test that separates different leaves; -1 when one class is left
};

/// Bounds every score over the box by sums of extremes in the model's order: rounding to nearest is monotone, so
/// the bounds hold for the computed scores, ties included.
Verdict judge(const Trees& trees, const Lattice& lattice, ConstBox box);

/// How much larger one raw score must be than another to win in a softmax, whatever the rounding of its exponentials.
double softmax_margin(const Trees& trees);
}  // namespace cfmaps
