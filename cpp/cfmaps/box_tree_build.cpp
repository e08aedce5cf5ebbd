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

/// Writes both ends as they are.
template <class Kind>
struct BothEnds
{
    using Code = Kind::Code;

    template <class End>
    void write(Code* lane, std::size_t lanes, std::size_t, End lower, End upper) const
    {
        lane[0] = lower;
        lane[lanes] = upper;
    }
    std::pair<Code, Code> read(const Code* lane, std::size_t lanes, std::size_t) const
    {
        return {lane[0], lane[lanes]};
    }
};

/// Numbers the intervals of each feature: every lower end with every upper end that is not below it.
class Intervals
{
public:
    explicit Intervals(const CodedBoxes& boxes) : first_{0}
    {
        for (std::size_t feature = 0; feature < boxes.n_features; ++feature)
            number(boxes, feature);
    }

    bool fit() const
    {
        return most_ <= IntervalCodes::most_per_feature && ends_.size() <= 2 * IntervalCodes::most_intervals;
    }
    void write(std::uint8_t* lane, std::size_t, std::size_t feature, std::uint16_t lower, std::uint16_t upper) const
    {
        lane[0] = static_cast<std::uint8_t>(names_[feature][lower * n_uppers_[feature] + upper]);
    }
    std::pair<std::uint16_t, std::uint16_t> read(const std::uint8_t* lane, std::size_t, std::size_t feature) const
    {
        return codes_[first_[2 * feature] / 2 + lane[0]];
    }
    const std::vector<double>& ends() const { return ends_; }
    const std::vector<std::uint32_t>& first() const { return first_; }

private:
    void number(const CodedBoxes& boxes, std::size_t feature)
    {
        const std::size_t n_lowers = boxes.table_size(2 * feature), n_uppers = boxes.table_size(2 * feature + 1);
        const double* lowers = boxes.ends.data() + boxes.first[2 * feature];
        const double* uppers = boxes.ends.data() + boxes.first[2 * feature + 1];
        std::vector<std::uint32_t> names(n_lowers * n_uppers);
        const std::size_t before = codes_.size();
        for (std::size_t lower = 0; lower < n_lowers; ++lower)
            for (std::size_t upper = 0; upper < n_uppers; ++upper)
                if (lowers[lower] <= uppers[upper])
                {
                    names[lower * n_uppers + upper] = static_cast<std::uint32_t>(codes_.size() - before);
                    codes_.emplace_back(lower, upper);
                }
        for (std::size_t place = before; place < codes_.size(); ++place)
            ends_.push_back(lowers[codes_[place].first]);
        first_.push_back(static_cast<std::uint32_t>(ends_.size()));
        for (std::size_t place = before; place < codes_.size(); ++place)
            ends_.push_back(uppers[codes_[place].second]);
        first_.push_back(static_cast<std::uint32_t>(ends_.size()));
        names_.push_back(std::move(names));
        n_uppers_.push_back(n_uppers);
        most_ = std::max(most_, codes_.size() - before);
    }

    std::vector<std::vector<std::uint32_t>> names_;  // per feature, of lower and upper code
    std::vector<std::size_t> n_uppers_;
    std::vector<std::pair<std::uint16_t, std::uint16_t>> codes_;
    std::vector<double> ends_;
    std::vector<std::uint32_t> first_;
    std::size_t most_ = 0;
};

/// Splits boxes at the median of their middles and writes the tree depth first.
template <class Boxes, class Kind, class Codes>
class Builder
{
public:
    Builder(IndexedBoxes<Kind>& tree, const Boxes& boxes, const Codes& codes, std::size_t leaf_size, const Poll& poll)
        : tree_(tree), boxes_(boxes), codes_(codes), leaf_size_(leaf_size), poll_(poll), keys_(tree.n_boxes)
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
    using Code = Kind::Code;

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
            for (std::size_t feature = 0; feature < tree_.n_features; ++feature)
                codes_.write(&tree_.box_ends[block + tree_.lane_of(feature, leaf_lanes) + lane], leaf_lanes, feature,
                             boxes_.end(box, 2 * feature), boxes_.end(box, 2 * feature + 1));
        }
    }

    void bound_leaf(std::size_t node, std::size_t feature, std::size_t first, std::size_t last)
    {
        auto lower = boxes_.end(keys_[first].second, 2 * feature);
        auto upper = boxes_.end(keys_[first].second, 2 * feature + 1);
        for (std::size_t place = first + 1; place < last; ++place)
        {
            lower = std::min(lower, boxes_.end(keys_[place].second, 2 * feature));
            upper = std::max(upper, boxes_.end(keys_[place].second, 2 * feature + 1));
        }
        codes_.write(bounds_of(node, feature), child_lanes, feature, lower, upper);
    }

    void join_children(std::size_t node, std::size_t child)
    {
        const std::uint32_t lowest = std::min(tree_.nodes[child].lowest, tree_.nodes[child + 1].lowest);
        tree_.nodes[node] = {static_cast<std::uint32_t>(child), 0, lowest};
        for (std::size_t feature = 0; feature < tree_.n_features; ++feature)
        {
            const auto [lower, upper] = codes_.read(bounds_of(child, feature), child_lanes, feature);
            const auto [other_lower, other_upper] = codes_.read(bounds_of(child + 1, feature), child_lanes, feature);
            codes_.write(bounds_of(node, feature), child_lanes, feature, std::min(lower, other_lower),
                         std::max(upper, other_upper));
        }
    }

    Code* bounds_of(std::size_t node, std::size_t feature)
    {
        const std::size_t place = node + 1;
        return &tree_.node_ends[place / child_lanes * tree_.block_size(child_lanes) +
                                tree_.lane_of(feature, child_lanes) + place % child_lanes];
    }

    IndexedBoxes<Kind>& tree_;
    const Boxes& boxes_;
    const Codes& codes_;
    std::size_t leaf_size_;
    const Poll& poll_;
    std::vector<std::pair<Key, std::uint32_t>> keys_;  // middle along the axis of the split at hand, box
    std::vector<Key> smallest_, largest_;
};

template <class Kind, class Boxes, class Codes>
IndexedBoxes<Kind> index(const Boxes& boxes, const Codes& codes, std::size_t n_features, std::size_t n_boxes,
                         std::size_t leaf_size, const Poll& poll)
{
    assert(n_features > 0 && leaf_size > 0 && n_boxes <= BoxTree::most_boxes);
    IndexedBoxes<Kind> tree;
    tree.n_features = n_features;
    tree.n_boxes = n_boxes;
    Builder<Boxes, Kind, Codes>(tree, boxes, codes, leaf_size, poll).build();
    return tree;
}

template <class Kind, class Codes>
IndexedBoxes<Kind> index_coded(const CodedBoxes& boxes, const Codes& codes, const std::vector<double>& ends,
                               const std::vector<std::uint32_t>& first, std::size_t leaf_size, const Poll& poll)
{
    auto tree = index<Kind>(SummedBoxes{boxes}, codes, boxes.n_features, boxes.n_boxes(), leaf_size, poll);
    tree.ends = ends;
    tree.first = first;
    return tree;
}

}  // namespace

BoxTree::BoxTree(const CodedBoxes& boxes, std::size_t leaf_size, const Poll& poll)
{
    if (const Intervals intervals(boxes); intervals.fit())
        tree_ = index_coded<IntervalCodes>(boxes, intervals, intervals.ends(), intervals.first(), leaf_size, poll);
    else
        tree_ = index_coded<EndCodes>(boxes, BothEnds<EndCodes>{}, boxes.ends, boxes.first, leaf_size, poll);
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
    tree_ = index<Numbers>(boxes, BothEnds<Numbers>{}, n_features, lower.size() / n_features, leaf_size, poll);
}

}  // namespace cfmaps
