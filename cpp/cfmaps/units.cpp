#include "units.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cfmaps
{
namespace
{
constexpr uint32_t most_pair_classes = 8;

void raise(double* most, const double* values, size_t n)
{
    for (size_t k = 0; k < n; ++k)
        most[k] = std::max(most[k], std::abs(values[k]));
}
}  // namespace

Lanes::Lanes(const Trees& trees)
    : n_classes(trees.n_classes()), bands(trees.rule == Rule::bands), pairs(!bands && n_classes <= most_pair_classes),
      n_lanes(bands   ? 1
              : pairs ? std::max(1u, n_classes * (n_classes - 1) / 2)
                      : n_classes)
{
}

void Lanes::margins(const double* scores, double* out) const
{
    if (bands)
        *out = *scores;
    else if (!pairs)
        std::copy(scores, scores + n_classes, out);
    else if (n_classes < 2)
        *out = 0;
    else
        for (uint32_t second = 1; second < n_classes; ++second)
            for (uint32_t first = 0; first < second; ++first)
                out[pair(first, second)] = scores[first] - scores[second];
}

Units::Units(const Trees& trees, const Lanes& lanes) : trees_(trees), lanes_(lanes), margins_(lanes.n_lanes)
{
    size_sums();
    // Neither a lane's sum over all trees nor a tree's spread over all lanes may overflow.
    unit_ = std::exp2(std::floor(std::log2(std::exp2(28) / std::max({largest_sum_, widest_tree_ / 2, 1e-290}))));
    if (is_exact())
        return;
    const double slack = rounding() * unit_ + static_cast<double>(trees.roots.size() + 1) * 0.5001 + 1;
    slack_ = static_cast<int32_t>(std::min(std::ceil(slack) + 1, 2e9));
}

std::vector<int64_t> Units::cuts() const
{
    std::vector<int64_t> whole;
    for (double cut : trees_.cuts)
    {
        const double scaled = std::ceil(std::clamp(cut * unit_, -0x1p+40, 0x1p+40));
        whole.push_back(static_cast<int64_t>(scaled) + (cut > 0 && scaled == 0));
    }
    return whole;
}

std::vector<int32_t> Units::constants()
{
    std::vector<int32_t> out(lanes_.n_lanes);
    measure(constant_sums().data(), out.data());
    return out;
}

void Units::measure(const double* scores, int32_t* out)
{
    lanes_.margins(scores, margins_.data());
    for (uint32_t lane = 0; lane < lanes_.n_lanes; ++lane)
        out[lane] = static_cast<int32_t>(margins_[lane] * unit_ + (margins_[lane] < 0 ? -0.5 : 0.5));
}

/// The most that sums of absolute margins may come to, in a lane; and those of one tree, over all lanes.
void Units::size_sums()
{
    const size_t n_trees = trees_.roots.size();
    const std::vector<uint32_t> tree_of = trees_of_nodes();
    std::vector<double> most(n_trees * lanes_.n_lanes), score(n_trees), sums(lanes_.n_lanes);
    for (size_t node = 0; node < trees_.nodes.size(); ++node)
    {
        if (trees_.nodes[node].test != is_leaf)
            continue;
        const size_t tree = tree_of[node];
        lanes_.margins(trees_.scores_of(node), margins_.data());
        raise(&most[tree * lanes_.n_lanes], margins_.data(), lanes_.n_lanes);
        for (size_t k = 0; k < trees_.n_scores(); ++k)
            raise(&score[tree], trees_.scores_of(node) + k, 1);
    }
    lanes_.margins(constant_sums().data(), margins_.data());
    raise(sums.data(), margins_.data(), lanes_.n_lanes);
    for (const double& start : trees_.init)
        raise(&largest_score_, &start, 1);
    largest_score_ = std::accumulate(score.begin(), score.end(), largest_score_);
    for (size_t tree = 0; tree < n_trees; ++tree)
    {
        const double* of_tree = &most[tree * lanes_.n_lanes];
        widest_tree_ = std::max(widest_tree_, std::accumulate(of_tree, of_tree + lanes_.n_lanes, 0.0));
        for (uint32_t lane = 0; lane < lanes_.n_lanes; ++lane)
            sums[lane] += of_tree[lane];
    }
    largest_sum_ = *std::max_element(sums.begin(), sums.end());
}

/// Parents come before their children.
std::vector<uint32_t> Units::trees_of_nodes() const
{
    std::vector<uint32_t> tree_of(trees_.nodes.size());
    for (size_t tree = 0; tree < trees_.roots.size(); ++tree)
        tree_of[trees_.roots[tree]] = static_cast<uint32_t>(tree);
    for (size_t node = 0; node < trees_.nodes.size(); ++node)
        if (trees_.nodes[node].test != is_leaf)
            tree_of[trees_.nodes[node].left] = tree_of[trees_.nodes[node].right] = tree_of[node];
    return tree_of;
}

/// What all sums start with. A bias is added after all, but tells classes apart as if it came before.
std::vector<double> Units::constant_sums() const
{
    std::vector<double> sums(trees_.init);
    for (size_t score = 0; score < sums.size() && trees_.rule != Rule::bands; ++score)
        sums[score] += trees_.bias_of(score) * trees_.divisor / trees_.scale;
    return sums;
}

/// How far the model's sums, and what it makes of them, may be from the exact ones that a lane stands for.
double Units::rounding() const
{
    double largest_bias = 0;
    for (double bias : trees_.bias)
        largest_bias = std::max(largest_bias, std::abs(bias) * trees_.divisor / trees_.scale);
    const double of_one = trees_.single_sums ? 0x1p-24 : 0x1p-53;
    const double n_steps = static_cast<double>(trees_.roots.size()) + 8;
    const double relative = n_steps * of_one / (1 - std::min(n_steps * of_one, 0.5));
    const double of_score = relative * (largest_score_ + 2 * largest_bias) * 1.001;
    return (lanes_.pairs ? 2 : 1) * of_score + softmax_margin(trees_) * trees_.divisor / trees_.scale;
}

/// Whether every value is a whole number of units: then sums are exact here and in the model, and no division
/// by the number of trees can bring two different sums together.
bool Units::is_exact() const
{
    if (trees_.rule == Rule::softmax || !trees_.bias.empty() || largest_score_ * unit_ > 0x1p+48 ||
        (trees_.single_sums && (largest_score_ * unit_ > 0x1p+22 || trees_.divisor != 1 || trees_.scale != 1)))
        return false;
    const auto whole = [this](double value) { return std::trunc(value * unit_) == value * unit_; };
    for (size_t node = 0; node < trees_.nodes.size(); ++node)
        if (trees_.nodes[node].test == is_leaf)
            if (!std::all_of(trees_.scores_of(node), trees_.scores_of(node) + trees_.n_scores(), whole))
                return false;
    return std::all_of(trees_.init.begin(), trees_.init.end(), whole);
}
}  // namespace cfmaps
