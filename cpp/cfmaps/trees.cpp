#include "trees.hpp"

#include <algorithm>
#include <limits>

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

bool beats(const std::vector<double>& low, const std::vector<double>& high, size_t winner, size_t loser)
{
    return winner < loser ? low[winner] >= high[loser] : low[winner] > high[loser];
}

std::vector<uint32_t> possible_classes(const std::vector<double>& low, const std::vector<double>& high)
{
    std::vector<uint32_t> possible;
    for (size_t label = 0; label < low.size(); ++label)
    {
        bool beaten = false;
        for (size_t other = 0; other < low.size() && !beaten; ++other)
            beaten = other != label && beats(low, high, other, label);
        if (!beaten)
            possible.push_back(static_cast<uint32_t>(label));
    }
    return possible;
}
}  // namespace

uint32_t Trees::label(const double* row) const
{
    std::vector<double> scores(init);
    for (int32_t node : roots)
    {
        const TreeNode* at = &nodes[node];
        while (at->test != is_leaf)
        {
            const double value = row[at->feature];
            at = &nodes[(single ? static_cast<float>(value) : value) <= at->threshold ? at->left : at->right];
        }
        node = static_cast<int32_t>(at - nodes.data());
        for (size_t score = 0; score < scores.size(); ++score)
            scores[score] += scores_of(node)[score];
    }
    for (double& score : scores)
        score /= divisor;  // division can turn a small difference into a tie
    return first_largest(scores);
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
        for (size_t score = 0; score < low.size(); ++score)
        {
            low[score] += extremes.low[score];
            high[score] += extremes.high[score];
        }
    }
    for (size_t score = 0; score < low.size(); ++score)
    {
        low[score] /= trees.divisor;
        high[score] /= trees.divisor;
    }
    verdict.possible = possible_classes(low, high);
    if (verdict.possible.size() > 1)
        verdict.cut = first_cut(trees, lattice, box, mixed);
    return verdict;
}
}  // namespace cfmaps
