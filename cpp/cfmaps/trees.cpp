#include "trees.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace cfmaps
{
namespace
{
uint32_t first_largest(const std::vector<double>& scores)
{
    return static_cast<uint32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

/// Extremes of one tree's leaves over a box, score by score.
struct Extremes
{
    const Trees& trees;
    std::vector<double> low, high;

    explicit Extremes(const Trees& trees) : trees(trees), low(trees.n_scores()), high(trees.n_scores()) {}
    void clear()
    {
        std::fill(low.begin(), low.end(), std::numeric_limits<double>::infinity());
        std::fill(high.begin(), high.end(), -std::numeric_limits<double>::infinity());
    }
    void operator()(int32_t leaf)
    {
        const double* scores = trees.scores_of(leaf);
        for (size_t score = 0; score < low.size(); ++score)
        {
            low[score] = std::min(low[score], scores[score]);
            high[score] = std::max(high[score], scores[score]);
        }
    }
};

/// Sides of a node on which the box has cells.
Sides sides_at(const Trees& trees, const Lattice& lattice, ConstBox box, int32_t node)
{
    const int32_t test = trees.nodes[node].test;
    return test < 0 ? Sides{test == always_left, test == always_right} : sides_of(lattice, box, test);
}

/// The first test of the tree that has cells of the box on both sides.
int32_t first_cut(const Trees& trees, const Lattice& lattice, ConstBox box, int32_t node)
{
    for (;;)
    {
        const Sides sides = sides_at(trees, lattice, box, node);
        if (sides.both())
            return trees.nodes[node].test;
        node = sides.left ? trees.nodes[node].left : trees.nodes[node].right;
    }
}

/// Calls `visit(leaf)` for each leaf of the tree that some cell of the box reaches.
void each_leaf(const Trees& trees, const Lattice& lattice, ConstBox box, int32_t node, Extremes& visit)
{
    if (trees.nodes[node].test == is_leaf)
        return visit(node);
    const Sides sides = sides_at(trees, lattice, box, node);
    if (sides.left)
        each_leaf(trees, lattice, box, trees.nodes[node].left, visit);
    if (sides.right)
        each_leaf(trees, lattice, box, trees.nodes[node].right, visit);
}

/// One addition, division, ... as the model rounds it.
double rounded(const Trees& trees, double value)
{
    return trees.single_sums ? static_cast<double>(static_cast<float>(value)) : value;
}

/// Adds a leaf's values to sums. Two float32 numbers have their exact sum, product or quotient in a double, or one
/// that rounds to float32 as the exact one does.
void add(const Trees& trees, std::vector<double>& sums, const double* values)
{
    for (size_t score = 0; score < sums.size(); ++score)
        sums[score] = rounded(trees, sums[score] + values[score]);
}

/// What the model makes of a sum.
double raw_score(const Trees& trees, double sum, size_t score)
{
    sum = rounded(trees, sum / trees.divisor);
    sum = rounded(trees, sum * trees.scale);
    return rounded(trees, sum + trees.bias_of(score));
}

/// Division can turn a small difference into a tie.
void finish(const Trees& trees, std::vector<double>& sums)
{
    for (size_t score = 0; score < sums.size(); ++score)
        sums[score] = raw_score(trees, sums[score], score);
}

uint32_t band_of(const Trees& trees, double sum)
{
    return static_cast<uint32_t>(std::upper_bound(trees.cuts.begin(), trees.cuts.end(), sum) - trees.cuts.begin());
}

/// The class of the sums of all trees.
uint32_t class_of(const Trees& trees, std::vector<double> sums)
{
    if (trees.rule == Rule::bands)
        return band_of(trees, sums[0]);
    finish(trees, sums);
    return trees.rule == Rule::argmax ? first_largest(sums)
                                      : softmax_label(sums.data(), sums.size(), trees.single_softmax);
}

bool beats(double least, double most, bool is_first, double margin)
{
    if (margin > 0)
        return least - most > margin;
    return is_first ? least >= most : least > most;
}

/// Classes whose raw scores no other surely beats.
std::vector<uint32_t> possible_classes(const std::vector<double>& low, const std::vector<double>& high, double margin)
{
    std::vector<uint32_t> possible;
    for (size_t label = 0; label < low.size(); ++label)
    {
        bool beaten = false;
        for (size_t other = 0; other < low.size() && !beaten; ++other)
            beaten = other != label && beats(low[other], high[label], other < label, margin);
        if (!beaten)
            possible.push_back(static_cast<uint32_t>(label));
    }
    return possible;
}

std::vector<uint32_t> possible_bands(const Trees& trees, double low, double high)
{
    std::vector<uint32_t> possible;
    for (uint32_t label = band_of(trees, low); label <= band_of(trees, high); ++label)
        possible.push_back(label);
    return possible;
}

/// Floats in their order as integers, so that halving finds a float.
int64_t rank_of(double value)
{
    const auto bits = std::bit_cast<int64_t>(value);
    return bits < 0 ? std::numeric_limits<int64_t>::min() - bits : bits;
}
double value_of(int64_t rank)
{
    return std::bit_cast<double>(rank < 0 ? std::numeric_limits<int64_t>::min() - rank : rank);
}

template <class Float>
Float softmax(const double* scores, size_t n_scores, std::vector<Float>& out)
{
    const auto largest = static_cast<Float>(*std::max_element(scores, scores + n_scores));
    double total = 0;
    for (size_t score = 0; score < n_scores; ++score)
    {
        out[score] = std::exp(static_cast<Float>(scores[score]) - largest);
        total += out[score];
    }
    return static_cast<Float>(total);
}

template <class Float>
uint32_t label_of_softmax(const double* scores, size_t n_scores)
{
    std::vector<Float> shares(n_scores);
    const Float total = softmax(scores, n_scores, shares);
    for (Float& share : shares)
        share /= total;
    return static_cast<uint32_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
}
}  // namespace

uint32_t softmax_label(const double* scores, size_t n_scores, bool single)
{
    return single ? label_of_softmax<float>(scores, n_scores) : label_of_softmax<double>(scores, n_scores);
}

/// The exponential and the division are right to a few units in the last place: scores this far apart cannot tie.
double softmax_margin(const Trees& trees)
{
    if (trees.rule != Rule::softmax)
        return 0;
    return trees.single_softmax || trees.single_sums ? 0x1p-18 : 0x1p-47;
}

bool Routes::goes_left(size_t node, double value, double threshold) const
{
    bool left = value <= threshold, missing = std::isnan(value);
    if (!category_set.empty() && category_set[node] >= 0)
    {
        const std::vector<bool>& set = codes[category_set[node]];
        missing = !(value >= 0 && value < static_cast<double>(set.size()));
        left = !missing && set[static_cast<size_t>(value)];
    }
    return missing && !missing_left.empty() ? missing_left[node] : left;
}

int32_t Trees::leaf_of(int32_t root, const double* row) const
{
    const bool has_sets = !routes.category_set.empty();
    const TreeNode* at = &nodes[root];
    while (at->test != is_leaf)
    {
        const double value = single ? static_cast<double>(static_cast<float>(row[at->feature])) : row[at->feature];
        bool left = value <= at->threshold;
        if (has_sets || value != value)
            left = routes.goes_left(static_cast<size_t>(at - nodes.data()), value, at->threshold);
        at = &nodes[left ? at->left : at->right];
    }
    return static_cast<int32_t>(at - nodes.data());
}

uint32_t Trees::label(const double* row) const
{
    std::vector<double> sums(init);
    for (int32_t root : roots)
        add(*this, sums, scores_of(leaf_of(root, row)));
    return class_of(*this, std::move(sums));
}

void Trees::cut_sums()
{
    const double largest = single_sums ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
    for (double& cut : cuts)
    {
        if (raw_score(*this, cut, 0) == cut && raw_score(*this, std::nextafter(cut, -largest), 0) < cut)
            continue;
        int64_t low = rank_of(-largest), high = rank_of(largest);
        while (low < high)  // the raw score only grows with the sum
        {
            const int64_t middle = std::midpoint(low, high);
            if (raw_score(*this, rounded(*this, value_of(middle)), 0) >= cut)
                high = middle;
            else
                low = middle + 1;
        }
        const double sum = rounded(*this, value_of(low));
        cut = raw_score(*this, sum, 0) >= cut ? sum : std::numeric_limits<double>::infinity();
    }
}

Verdict judge(const Trees& trees, const Lattice& lattice, ConstBox box)
{
    Verdict verdict;
    std::vector<double> low(trees.init), high(trees.init);
    Extremes extremes(trees);
    int32_t mixed = -1;
    for (int32_t root : trees.roots)
    {
        extremes.clear();
        each_leaf(trees, lattice, box, root, extremes);
        if (mixed < 0 && extremes.low != extremes.high)
            mixed = root;
        add(trees, low, extremes.low.data());
        add(trees, high, extremes.high.data());
    }
    if (mixed < 0)
    {
        verdict.possible = {class_of(trees, std::move(low))};
        return verdict;
    }
    if (trees.rule == Rule::bands)
        verdict.possible = possible_bands(trees, low[0], high[0]);
    else
    {
        finish(trees, low);
        finish(trees, high);
        verdict.possible = possible_classes(low, high, softmax_margin(trees));
    }
    if (verdict.possible.size() > 1)
        verdict.cut = first_cut(trees, lattice, box, mixed);
    return verdict;
}
}  // namespace cfmaps
