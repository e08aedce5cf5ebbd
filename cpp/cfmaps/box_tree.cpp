#include "cfmaps/box_tree.hpp"

#include "cfmaps/box_ruler.hpp"
#include "cfmaps/norms.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace cfmaps
{
namespace
{

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Within these, a sum of powers has lost no digit to underflow or overflow.
constexpr double smallest_total = 0x1p-900, largest_total = 0x1p+1000;

/// The best box so far, as a total of powers, and what is known of all that was not opened.
struct Found
{
    double total = infinity;
    std::uint32_t index = no_box;
    std::size_t slot = 0;
    std::int64_t visited = 0;
    double bound = infinity;

    /// Whether a box of this index (or a node holding it) at this total would be a better answer.
    bool loses_to(double other_total, std::uint32_t other_index) const
    {
        return other_total < total || (other_total == total && other_index < index);
    }
    /// A total that overflowed is known to be large, not to be infinite.
    void leave_unopened(double other_total)
    {
        bound = std::min({bound, other_total, std::numeric_limits<double>::max()});
    }
};

template <class Norm>
Found rooted(const Norm& norm, Found found)
{
    found.total = norm.root(found.total);
    found.bound = std::max(found.total, norm.root(found.bound));
    return found;
}

struct Open
{
    double bound;
    std::uint32_t lowest;
    std::uint32_t node;

    /// Order of a heap whose front is the nearest, then the one holding the lowest index.
    friend bool operator<(const Open& left, const Open& right)
    {
        return left.bound > right.bound || (left.bound == right.bound && left.lowest > right.lowest);
    }
};

using Heap = std::vector<Open>;

void push(Heap& heap, const Open& open)
{
    heap.push_back(open);
    std::push_heap(heap.begin(), heap.end());
}

Open pop(Heap& heap)
{
    std::pop_heap(heap.begin(), heap.end());
    const Open nearest = heap.back();
    heap.pop_back();
    return nearest;
}

/// One best-first search (paper, Algorithm 2).
template <class Kind, class Norm>
class Search
{
public:
    using Tree = IndexedBoxes<Kind>;
    using Code = Tree::Code;
    static constexpr std::size_t most_prefetched = 320;

    Search(const Tree& tree, const Norm& norm, const Query& query, Heap& heap)
        : tree_(tree), norm_(norm), query_(query), ruler_(tree, norm, query), heap_(heap)
    {
    }

    Found answer()
    {
        search();
        if constexpr (Norm::needs_a_unit)
            if (found_.total < smallest_total || found_.total > largest_total)
                return answer_in_its_own_unit();
        return rooted(norm_, found_);
    }

private:
    /// The answer is at least as far as the Chebyshev answer and at most a little farther. In that unit its powers are
    /// ordinary numbers, so totals that overflow belong to worse boxes and terms that vanish to its negligible gaps.
    Found answer_in_its_own_unit()
    {
        const Found widest = Search<Kind, Chebyshev>(tree_, {}, query_, heap_).answer();
        if (widest.total == 0.0 || widest.total == infinity)
            return widest;
        return Search<Kind, Scaled<Norm>>(tree_, {norm_, widest.total}, query_, heap_).answer();
    }

    void search()
    {
        heap_.clear();
        if (!tree_.nodes.empty())
            push(heap_, {0.0, tree_.nodes[0].lowest, 0});
        while (!heap_.empty())
        {
            const Open nearest = pop(heap_);
            if (!found_.loses_to(nearest.bound, nearest.lowest))
            {
                found_.leave_unopened(nearest.bound);
                break;  // every unopened node is at least this far: the best box is optimal
            }
            open(tree_.nodes[nearest.node]);
        }
    }

    void open(const BoxNode& node)
    {
        ++found_.visited;
        if (node.n_blocks == 0)
            open_children(node.first);
        for (std::size_t block = node.first; block < std::size_t{node.first} + node.n_blocks; ++block)
            measure_boxes(block);
    }

    void open_children(std::uint32_t child)
    {
        const Code* block = &tree_.node_ends[(child + 1) / child_lanes * tree_.block_size(child_lanes)];
        const auto distances = ruler_.template totals<child_lanes>(block);
        for (std::uint32_t lane = 0; lane < child_lanes; ++lane)
            offer(child + lane, norm_.bound(distances[lane]));
    }

    /// A node too far away is not even looked at, which would mean waiting for its memory.
    void offer(std::uint32_t id, double bound)
    {
        if (bound <= found_.total)
        {
            const BoxNode& node = tree_.nodes[id];
            prefetch(node);
            if (found_.loses_to(bound, node.lowest))
                return push(heap_, {bound, node.lowest, id});
        }
        found_.leave_unopened(bound);
    }

    /// Most of a search is waiting for the memory of the node it opens next.
    void prefetch(const BoxNode& node) const
    {
        const bool is_leaf = node.n_blocks > 0;
        const std::size_t size = tree_.block_size(is_leaf ? leaf_lanes : child_lanes);
        const std::size_t block = is_leaf ? node.first : (node.first + 1) / child_lanes;
        const auto* bytes =
            reinterpret_cast<const char*>((is_leaf ? tree_.box_ends : tree_.node_ends).data() + block * size);
        const std::size_t n_bytes = std::max<std::size_t>(node.n_blocks, 1) * size * sizeof(Code);
        for (std::size_t line = 0; line < n_bytes && line < most_prefetched; line += 64)
            __builtin_prefetch(bytes + line);
    }

    void measure_boxes(std::size_t block)
    {
        const Code* ends = &tree_.box_ends[block * tree_.block_size(leaf_lanes)];
        const auto distances = ruler_.template totals<leaf_lanes>(ends);
        for (std::size_t lane = 0; lane < leaf_lanes; ++lane)
        {
            const std::size_t slot = block * leaf_lanes + lane;
            // A spare lane is as far as the first, which came before it and has a lower index.
            if (distances[lane] > found_.total || !found_.loses_to(distances[lane], tree_.order[slot]))
                continue;
            found_.total = distances[lane];
            found_.index = tree_.order[slot];
            found_.slot = slot;
        }
    }

    const Tree& tree_;
    const Norm norm_;
    const Query& query_;
    const Ruler<Kind, Norm> ruler_;
    Heap& heap_;
    Found found_;
};

template <class Kind>
void project(const IndexedBoxes<Kind>& tree, const double* point, std::size_t slot, double* projection)
{
    const auto* block = &tree.box_ends[slot / leaf_lanes * tree.block_size(leaf_lanes)];
    for (std::size_t feature = 0; feature < tree.n_features; ++feature)
    {
        const auto* lane = block + tree.lane_of(feature, leaf_lanes) + slot % leaf_lanes;
        projection[feature] =
            std::clamp(point[feature], tree.lower(feature, lane), tree.upper(feature, lane, leaf_lanes));
    }
}

template <class Kind, class Norm>
NearestBoxes answer_all(const IndexedBoxes<Kind>& tree, const Norm& norm, std::span<const double> points,
                        std::span<const double> weights, const Poll& poll)
{
    const std::size_t n_rows = points.size() / tree.n_features;
    NearestBoxes answers(n_rows, tree.n_features);
    Heap heap;
    for (std::size_t row = 0; row < n_rows; ++row)
    {
        if (poll)
            poll();
        const double* point = points.data() + row * tree.n_features;
        const Query query{point, weights.data(), tree.n_features};
        const Found found = Search<Kind, Norm>(tree, norm, query, heap).answer();
        answers.distance[row] = found.total;
        answers.visited[row] = found.visited;
        answers.bound[row] = found.bound;
        if (found.index == no_box)
            continue;
        answers.index[row] = found.index;
        project(tree, point, found.slot, &answers.point[row * tree.n_features]);
    }
    return answers;
}

}  // namespace

NearestBoxes BoxTree::nearest(std::span<const double> points, std::span<const double> weights, double p,
                              const Poll& poll) const
{
    assert(points.size() % n_features() == 0 && weights.size() == n_features() && p >= 1.0);
    const auto in_norm = [&](const auto& norm)
    { return std::visit([&](const auto& tree) { return answer_all(tree, norm, points, weights, poll); }, tree_); };
    if (p == 1.0)
        return in_norm(Manhattan{});
    if (p == 2.0)
        return in_norm(Euclid{});
    if (p > largest_power)
        return in_norm(Chebyshev{});
    if (p == std::floor(p))
        return in_norm(WholePower(p));
    return in_norm(RealPower(p, n_features()));
}

std::size_t BoxTree::n_features() const
{
    return std::visit([](const auto& tree) { return tree.n_features; }, tree_);
}

std::size_t BoxTree::n_boxes() const
{
    return std::visit([](const auto& tree) { return tree.n_boxes; }, tree_);
}

std::size_t BoxTree::n_nodes() const
{
    return std::visit([](const auto& tree) { return tree.nodes.size(); }, tree_);
}

std::size_t BoxTree::n_bytes() const
{
    return sizeof(*this) + std::visit([](const auto& tree) { return tree.n_bytes(); }, tree_);
}

}  // namespace cfmaps
