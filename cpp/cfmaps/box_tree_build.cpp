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

/// Boxes as a caller gives them, two matrices of numbers, in the order of their centres.
struct PlainBoxes
{
    using Key = double;

    std::size_t n_features;
    const double* ends[2];

    double end(std::size_t box, std::size_t table) const { return ends[table % 2][box * n_features + table / 2]; }
    double key(std::size_t box, std::size_t feature) const
    {
        return centre(end(box, 2 * feature), end(box, 2 * feature + 1));
    }
    double half_length(std::size_t, double smallest, double largest) const { return largest / 2 - smallest / 2; }
};

/// Coded boxes in the order of the sums of their codes: middles in steps of the tables, which need no number at all.
struct SummedBoxes
{
    using Key = std::uint32_t;

    const CodedBoxes& boxes;

    std::uint16_t end(std::size_t box, std::size_t table) const
    {
        return boxes.codes[box * 2 * boxes.n_features + table];
    }
    Key key(std::size_t box, std::size_t feature) const
    {
        return Key{end(box, 2 * feature)} + end(box, 2 * feature + 1);
    }
    double half_length(std::size_t feature, Key smallest, Key largest) const
    {
        return middle(feature, largest) / 2 - middle(feature, smallest) / 2;
    }
    double middle(std::size_t feature, Key key) const
    {
        return centre(number(2 * feature, key / 2), number(2 * feature + 1, (key + 1) / 2));
    }
    double number(std::size_t table, std::size_t code) const
    {
        return boxes.ends[boxes.first[table] + std::min(code, boxes.table_size(table) - 1)];
    }
};

/// Splits boxes at the median of their middles and writes the tree depth first.
template <class Boxes, class End>
class Builder
{
public:
    Builder(IndexedBoxes<End>& tree, const Boxes& boxes, std::size_t leaf_size, const Poll& poll)
        : tree_(tree), boxes_(boxes), leaf_size_(leaf_size), poll_(poll), keys_(tree.n_boxes)
    {
        for (std::size_t box = 0; box < keys_.size(); ++box)
            keys_[box].second = static_cast<std::uint32_t>(box);
    }

    void build()
    {
        const std::size_t n_boxes = tree_.n_boxes;
        if (n_boxes == 0)
            return;
        const std::size_t n_leaves = (n_boxes - 1) / leaf_size_ + 1;
        const std::size_t last_leaf = n_boxes - (n_leaves - 1) * leaf_size_;
        const std::size_t n_blocks = (n_leaves - 1) * blocks_of(leaf_size_) + blocks_of(last_leaf);
        tree_.nodes.reserve(2 * n_leaves - 1);
        tree_.node_ends.resize(n_leaves * tree_.block_size(child_lanes));
        tree_.box_ends.reserve(n_blocks * tree_.block_size(leaf_lanes));
        tree_.order.reserve(n_blocks * leaf_lanes);
        tree_.nodes.emplace_back();
        grow(0, 0, n_boxes);
    }

private:
    using Key = Boxes::Key;

    static std::size_t blocks_of(std::size_t n_boxes) { return (n_boxes - 1) / leaf_lanes + 1; }

    void grow(std::size_t node, std::size_t first, std::size_t last)
    {
        if (last - first <= leaf_size_)
            return make_leaf(node, first, last);
        if (poll_ && last - first > 10000)
            poll_();
        const std::size_t middle = split(first, last);
        const std::size_t child = tree_.nodes.size();
        tree_.nodes.resize(child + 2);
        grow(child, first, middle);
        grow(child + 1, middle, last);
        join_children(node, child);
    }

    /// Puts the lower half of the middles first, along the axis where they spread most; halves are whole leaves.
    std::size_t split(std::size_t first, std::size_t last)
    {
        const std::size_t axis = widest_axis(first, last);
        for (std::size_t place = first; place < last; ++place)
            keys_[place].first = boxes_.key(keys_[place].second, axis);
        const std::size_t n_leaves = (last - first - 1) / leaf_size_ + 1;
        const std::size_t middle = first + n_leaves / 2 * leaf_size_;
        const auto key = [this](std::size_t place) { return keys_.begin() + static_cast<std::ptrdiff_t>(place); };
        std::nth_element(key(first), key(middle), key(last));
        return middle;
    }

    std::size_t widest_axis(std::size_t first, std::size_t last)
    {
        smallest_.assign(tree_.n_features, std::numeric_limits<Key>::max());
        largest_.assign(tree_.n_features, std::numeric_limits<Key>::lowest());
        for (std::size_t place = first; place < last; ++place)
            for (std::size_t axis = 0; axis < tree_.n_features; ++axis)
            {
                const Key key = boxes_.key(keys_[place].second, axis);
                smallest_[axis] = std::min(smallest_[axis], key);
                largest_[axis] = std::max(largest_[axis], key);
            }
        std::size_t widest = 0;
        double longest = -infinity;
        for (std::size_t axis = 0; axis < tree_.n_features; ++axis)
            if (const double length = boxes_.half_length(axis, smallest_[axis], largest_[axis]); length > longest)
            {
                longest = length;
                widest = axis;
            }
        return widest;
    }

    void make_leaf(std::size_t node, std::size_t first, std::size_t last)
    {
        const std::size_t size = tree_.block_size(leaf_lanes);
        tree_.nodes[node] = {static_cast<std::uint32_t>(tree_.box_ends.size() / size),
                             static_cast<std::uint32_t>(blocks_of(last - first)), no_box};
        for (std::size_t place = first; place < last; place += leaf_lanes)
            add_block(node, place, std::min(place + leaf_lanes, last));
        for (std::size_t feature = 0; feature < tree_.n_features; ++feature)
            bound_leaf(node, feature, first, last);
    }

    void add_block(std::size_t node, std::size_t first, std::size_t last)
    {
        const std::size_t block = tree_.box_ends.size();
        tree_.box_ends.resize(block + tree_.block_size(leaf_lanes));
        for (std::size_t lane = 0; lane < leaf_lanes; ++lane)
        {
            const bool is_spare = first + lane >= last;
            const std::uint32_t box = keys_[is_spare ? first : first + lane].second;
            tree_.order.push_back(is_spare ? no_box : box);
            tree_.nodes[node].lowest = std::min(tree_.nodes[node].lowest, box);
            for (std::size_t table = 0; table < 2 * tree_.n_features; ++table)
                tree_.box_ends[block + leaf_lanes * table + lane] = static_cast<End>(boxes_.end(box, table));
        }
    }

    void bound_leaf(std::size_t node, std::size_t feature, std::size_t first, std::size_t last)
    {
        End* bounds = bounds_of(node, feature);
        bounds[0] = static_cast<End>(boxes_.end(keys_[first].second, 2 * feature));
        bounds[child_lanes] = static_cast<End>(boxes_.end(keys_[first].second, 2 * feature + 1));
        for (std::size_t place = first + 1; place < last; ++place)
        {
            bounds[0] = std::min(bounds[0], static_cast<End>(boxes_.end(keys_[place].second, 2 * feature)));
            bounds[child_lanes] =
                std::max(bounds[child_lanes], static_cast<End>(boxes_.end(keys_[place].second, 2 * feature + 1)));
        }
    }

    void join_children(std::size_t node, std::size_t child)
    {
        const std::uint32_t lowest = std::min(tree_.nodes[child].lowest, tree_.nodes[child + 1].lowest);
        tree_.nodes[node] = {static_cast<std::uint32_t>(child), 0, lowest};
        for (std::size_t feature = 0; feature < tree_.n_features; ++feature)
        {
            const End* pair = bounds_of(child, feature);
            End* bounds = bounds_of(node, feature);
            bounds[0] = std::min(pair[0], pair[1]);
            bounds[child_lanes] = std::max(pair[child_lanes], pair[child_lanes + 1]);
        }
    }

    End* bounds_of(std::size_t node, std::size_t feature)
    {
        const std::size_t place = node + 1;
        return &tree_.node_ends[place / child_lanes * tree_.block_size(child_lanes) + 2 * child_lanes * feature +
                                place % child_lanes];
    }

    IndexedBoxes<End>& tree_;
    const Boxes& boxes_;
    std::size_t leaf_size_;
    const Poll& poll_;
    std::vector<std::pair<Key, std::uint32_t>> keys_;  // middle along the axis of the split at hand, box
    std::vector<Key> smallest_, largest_;
};

template <class End, class Boxes>
IndexedBoxes<End> index(const Boxes& boxes, std::size_t n_features, std::size_t n_boxes, std::size_t leaf_size,
                        const Poll& poll)
{
    assert(n_features > 0 && leaf_size > 0 && n_boxes <= BoxTree::most_boxes);
    IndexedBoxes<End> tree;
    tree.n_features = n_features;
    tree.n_boxes = n_boxes;
    Builder<Boxes, End>(tree, boxes, leaf_size, poll).build();
    return tree;
}

template <class Code>
IndexedBoxes<Code> index_coded(const CodedBoxes& boxes, std::size_t leaf_size, const Poll& poll)
{
    IndexedBoxes<Code> tree = index<Code>(SummedBoxes{boxes}, boxes.n_features, boxes.n_boxes(), leaf_size, poll);
    tree.ends = boxes.ends;
    tree.first = boxes.first;
    return tree;
}

}  // namespace

BoxTree::BoxTree(const CodedBoxes& boxes, std::size_t leaf_size, const Poll& poll)
{
    if (largest_table(boxes) <= 256)
        tree_ = index_coded<std::uint8_t>(boxes, leaf_size, poll);
    else
        tree_ = index_coded<std::uint16_t>(boxes, leaf_size, poll);
}

BoxTree::BoxTree(std::size_t n_features, std::span<const double> lower, std::span<const double> upper,
                 std::size_t leaf_size, const Poll& poll)
{
    assert(lower.size() == upper.size() && lower.size() % n_features == 0);
    if (const auto coded = code_boxes(n_features, lower, upper))
    {
        *this = BoxTree(*coded, leaf_size, poll);
        return;
    }
    const PlainBoxes boxes{n_features, {lower.data(), upper.data()}};
    tree_ = index<double>(boxes, n_features, lower.size() / n_features, leaf_size, poll);
}

}  // namespace cfmaps
