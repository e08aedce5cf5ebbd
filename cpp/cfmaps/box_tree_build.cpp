#include "cfmaps/box_tree.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace cfmaps
{
namespace
{

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The middle of an interval, or its only finite end, or 0.
double centre(double lower, double upper)
{
    if (std::isinf(lower))
        return std::isinf(upper) ? 0.0 : upper;
    return std::isinf(upper) ? lower : lower / 2 + upper / 2;
}

}  // namespace

/// Splits boxes at the median of their centres and writes the tree depth first.
class BoxTree::Builder
{
public:
    Builder(BoxTree& tree, const double* lower, const double* upper, std::size_t leaf_size, const Poll& poll)
        : tree_(tree), lower_(lower), upper_(upper), leaf_size_(leaf_size), poll_(poll), keys_(tree.n_boxes_)
    {
        for (std::size_t box = 0; box < keys_.size(); ++box)
            keys_[box].second = static_cast<std::uint32_t>(box);
    }

    void build()
    {
        const std::size_t n_boxes = tree_.n_boxes_;
        if (n_boxes == 0)
            return;
        const std::size_t n_leaves = (n_boxes - 1) / leaf_size_ + 1;
        const std::size_t n_blocks = n_leaves * ((std::min(leaf_size_, n_boxes) - 1) / leaf_lanes + 1);
        tree_.nodes_.reserve(2 * n_leaves - 1);
        tree_.node_bounds_.resize(n_leaves * tree_.block_size(child_lanes));
        tree_.boxes_.reserve(n_blocks * tree_.block_size(leaf_lanes));
        tree_.order_.reserve(n_blocks * leaf_lanes);
        tree_.nodes_.emplace_back();
        grow(0, 0, n_boxes);
    }

private:
    void grow(std::size_t node, std::size_t first, std::size_t last)
    {
        if (last - first <= leaf_size_)
            return make_leaf(node, first, last);
        if (poll_ && last - first > 10000)
            poll_();
        const std::size_t middle = split(first, last);
        const std::size_t child = tree_.nodes_.size();
        tree_.nodes_.resize(child + 2);
        grow(child, first, middle);
        grow(child + 1, middle, last);
        join_children(node, child);
    }

    /// Puts the lower half of the centres first, along the axis where they spread most; halves are whole leaves.
    std::size_t split(std::size_t first, std::size_t last)
    {
        const std::size_t axis = widest_axis(first, last);
        for (std::size_t place = first; place < last; ++place)
            keys_[place].first = centre_of(keys_[place].second, axis);
        const std::size_t n_leaves = (last - first - 1) / leaf_size_ + 1;
        const std::size_t middle = first + n_leaves / 2 * leaf_size_;
        const auto key = [this](std::size_t place) { return keys_.begin() + static_cast<std::ptrdiff_t>(place); };
        std::nth_element(key(first), key(middle), key(last));
        return middle;
    }

    std::size_t widest_axis(std::size_t first, std::size_t last) const
    {
        std::vector<double> smallest(tree_.n_features_, infinity), largest(tree_.n_features_, -infinity);
        for (std::size_t place = first; place < last; ++place)
            for (std::size_t axis = 0; axis < tree_.n_features_; ++axis)
            {
                const double value = centre_of(keys_[place].second, axis);
                smallest[axis] = std::min(smallest[axis], value);
                largest[axis] = std::max(largest[axis], value);
            }
        for (std::size_t axis = 0; axis < tree_.n_features_; ++axis)
            largest[axis] = largest[axis] / 2 - smallest[axis] / 2;
        return static_cast<std::size_t>(std::max_element(largest.begin(), largest.end()) - largest.begin());
    }

    double centre_of(std::uint32_t box, std::size_t axis) const
    {
        const std::size_t place = box * tree_.n_features_ + axis;
        return centre(lower_[place], upper_[place]);
    }

    void make_leaf(std::size_t node, std::size_t first, std::size_t last)
    {
        const std::size_t size = tree_.block_size(leaf_lanes);
        const std::size_t n_blocks = (last - first - 1) / leaf_lanes + 1;
        tree_.nodes_[node] = {static_cast<std::uint32_t>(tree_.boxes_.size() / size),
                              static_cast<std::uint32_t>(n_blocks), nothing};
        for (std::size_t place = first; place < last; place += leaf_lanes)
            add_block(node, place, std::min(place + leaf_lanes, last));
        for (std::size_t feature = 0; feature < tree_.n_features_; ++feature)
            bound_leaf(node, feature, first, last);
    }

    /// Lanes without a box stay at infinity, where no search looks.
    void add_block(std::size_t node, std::size_t first, std::size_t last)
    {
        const std::size_t block = tree_.boxes_.size();
        tree_.boxes_.resize(block + tree_.block_size(leaf_lanes), infinity);
        tree_.order_.resize(tree_.order_.size() + leaf_lanes, nothing);
        for (std::size_t place = first; place < last; ++place)
        {
            const std::uint32_t box = keys_[place].second;
            tree_.order_[tree_.order_.size() - leaf_lanes + (place - first)] = box;
            tree_.nodes_[node].lowest = std::min(tree_.nodes_[node].lowest, box);
            for (std::size_t feature = 0; feature < tree_.n_features_; ++feature)
            {
                double* lane = &tree_.boxes_[block + 2 * leaf_lanes * feature + (place - first)];
                lane[0] = lower_[box * tree_.n_features_ + feature];
                lane[leaf_lanes] = upper_[box * tree_.n_features_ + feature];
            }
        }
    }

    void bound_leaf(std::size_t node, std::size_t feature, std::size_t first, std::size_t last)
    {
        double* bounds = bounds_of(node, feature);
        bounds[0] = infinity;
        bounds[child_lanes] = -infinity;
        for (std::size_t place = first; place < last; ++place)
        {
            const std::size_t corner = keys_[place].second * tree_.n_features_ + feature;
            bounds[0] = std::min(bounds[0], lower_[corner]);
            bounds[child_lanes] = std::max(bounds[child_lanes], upper_[corner]);
        }
    }

    void join_children(std::size_t node, std::size_t child)
    {
        const std::uint32_t lowest = std::min(tree_.nodes_[child].lowest, tree_.nodes_[child + 1].lowest);
        tree_.nodes_[node] = {static_cast<std::uint32_t>(child), 0, lowest};
        for (std::size_t feature = 0; feature < tree_.n_features_; ++feature)
        {
            const double* pair = bounds_of(child, feature);
            double* bounds = bounds_of(node, feature);
            bounds[0] = std::min(pair[0], pair[1]);
            bounds[child_lanes] = std::max(pair[child_lanes], pair[child_lanes + 1]);
        }
    }

    double* bounds_of(std::size_t node, std::size_t feature)
    {
        const std::size_t place = node + 1;
        return &tree_.node_bounds_[place / child_lanes * tree_.block_size(child_lanes) + 2 * child_lanes * feature +
                                   place % child_lanes];
    }

    BoxTree& tree_;
    const double* lower_;
    const double* upper_;
    std::size_t leaf_size_;
    const Poll& poll_;
    std::vector<std::pair<double, std::uint32_t>> keys_;  // centre along the axis of the split at hand, box
};

BoxTree::BoxTree(std::size_t n_features, std::span<const double> lower, std::span<const double> upper,
                 std::size_t leaf_size, const Poll& poll)
    : n_features_(n_features), n_boxes_(lower.size() / n_features)
{
    assert(n_features > 0 && leaf_size > 0 && lower.size() == upper.size() && lower.size() % n_features == 0);
    assert(n_boxes_ <= most_boxes);
    Builder(*this, lower.data(), upper.data(), leaf_size, poll).build();
}

}  // namespace cfmaps
