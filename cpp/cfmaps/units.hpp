#pragma once
// Sums of scores in integers: which of them decide, in what unit, and how far the model's own rounding may be off.

#include "trees.hpp"

namespace cfmaps
{
/// Which sums decide between classes: one lane for every pair, or one for every class when pairs are too many; for
/// bands the only score itself.
struct Lanes
{
    uint32_t n_classes;
    bool bands, pairs;
    uint32_t n_lanes;
    std::vector<int64_t> cuts = {};  // bands, in the integers of the lane: at or above means the cut is reached

    explicit Lanes(const Trees& trees);
    /// Lane of the pair first < second.
    uint32_t pair(uint32_t first, uint32_t second) const { return second * (second - 1) / 2 + first; }
    /// The lanes of a row of sums: how far the first class of each pair is ahead.
    void margins(const double* scores, double* out) const;
};

/// The unit of the integers, chosen so that no sum overflows.
class Units
{
public:
    Units(const Trees& trees, const Lanes& lanes);

    /// What rounding, the integers' and the model's, can do to a sum of one lane.
    int32_t slack() const { return slack_; }
    /// The cuts between bands: the least whole number of units that reaches each.
    std::vector<int64_t> cuts() const;
    /// What the sums of all lanes start with.
    std::vector<int32_t> constants();
    /// The lanes of a row of sums.
    void measure(const double* scores, int32_t* out);

private:
    std::vector<uint32_t> trees_of_nodes() const;
    std::vector<double> constant_sums() const;
    void size_sums();
    double rounding() const;
    bool is_exact() const;

    const Trees& trees_;
    const Lanes& lanes_;
    double unit_ = 1;
    int32_t slack_ = 0;
    double largest_sum_ = 0, widest_tree_ = 0;  // of a lane, and of a tree over all lanes
    double largest_score_ = 0;                  // what the addends of one score may come to
    std::vector<double> margins_;
};
}  // namespace cfmaps
