#include "cfmaps/box_tree.hpp"

#include "cfmaps/norms.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

namespace cfmaps
{
namespace
{

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Query
{
    const double* point;
    const double* weights;
    std::size_t n_features;
};

Pair load(const double* numbers)
{
    Pair pair;
    std::memcpy(&pair, numbers, sizeof pair);
    return pair;
}

// A ruler gives the total of each box of a block. Bounds of nodes and distances of boxes both come from it: as a node's
// box contains its boxes and every step is monotone, no bound exceeds a total below it, and the search is exact.

/// Measures boxes whose ends are numbers.
template <class End, class Norm>
class Ruler
{
public:
    Ruler(const IndexedBoxes<End>&, const Norm& norm, const Query& query) : norm_(norm), query_(query) {}

    template <std::size_t lanes>
    std::array<double, lanes> totals(const double* block) const
    {
        Pair total[lanes / 2] = {};
        for (std::size_t feature = 0; feature < query_.n_features; ++feature, block += 2 * lanes)
            for (std::size_t pair = 0; pair < lanes / 2; ++pair)
            {
                const double* lower = block + 2 * pair;
                const Pair distance = gap(query_.point[feature], load(lower), load(lower + lanes));
                total[pair] = norm_.join(total[pair], norm_.term(query_.weights[feature] * distance));
            }
        std::array<double, lanes> result;
        std::memcpy(result.data(), total, sizeof result);
        return result;
    }

private:
    const Norm norm_;
    const Query query_;
};

/// Measures boxes whose ends are codes, by the term of every end: a point is outside one end of an interval at most, so
/// that the terms of both ends add up to the term of the gap, exactly.
template <class Code, class Norm>
    requires std::is_integral_v<Code>
class Ruler<Code, Norm>
{
public:
    Ruler(const IndexedBoxes<Code>& tree, const Norm& norm, const Query& query)
        : norm_(norm), n_features_(query.n_features), first_(tree.first), terms_(tree.ends.size())
    {
        for (std::size_t feature = 0; feature < n_features_; ++feature)
            for (std::size_t place = first_[2 * feature]; place < first_[2 * feature + 2]; ++place)
            {
                const double z = query.point[feature], end = tree.ends[place];
                const double out = std::max(place < first_[2 * feature + 1] ? end - z : z - end, 0.0);
                terms_[place] = norm.term(query.weights[feature] * Pair{out, out})[0];
            }
    }

    template <std::size_t lanes>
    std::array<double, lanes> totals(const Code* block) const
    {
        Pair total[lanes / 2] = {};
        for (std::size_t feature = 0; feature < n_features_; ++feature, block += 2 * lanes)
        {
            const double* lower = &terms_[first_[2 * feature]];
            const double* upper = &terms_[first_[2 * feature + 1]];
            for (std::size_t lane = 0; lane < lanes; lane += 2)
            {
                const Pair below{lower[block[lane]], lower[block[lane + 1]]};
                const Pair above{upper[block[lanes + lane]], upper[block[lanes + lane + 1]]};
                total[lane / 2] = norm_.join(total[lane / 2], below + above);
            }
        }
        std::array<double, lanes> result;
        std::memcpy(result.data(), total, sizeof result);
        return result;
    }

private:
    const Norm norm_;
    std::size_t n_features_;
    std::span<const std::uint32_t> first_;
    std::vector<double> terms_;
};

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
template <class End, class Norm>
class Search
{
public:
    using Tree = IndexedBoxes<End>;
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
        const Found widest = Search<End, Chebyshev>(tree_, {}, query_, heap_).answer();
        if (widest.total == 0.0 || widest.total == infinity)
            return widest;
        return Search<End, Scaled<Norm>>(tree_, {norm_, widest.total}, query_, heap_).answer();
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
        const End* block = &tree_.node_ends[(child + 1) / child_lanes * tree_.block_size(child_lanes)];
        const auto distances = ruler_.template totals<child_lanes>(block);
        for (std::uint32_t lane = 0; lane < child_lanes; ++lane)
        {
            const BoxNode& node = tree_.nodes[child + lane];
            const Open open{norm_.bound(distances[lane]), node.lowest, child + lane};
            if (found_.loses_to(open.bound, open.lowest))
            {
                prefetch(node);
                push(heap_, open);
            }
            else
                found_.leave_unopened(open.bound);
        }
    }

    /// Most of a search is waiting for the memory of the node it opens next.
    void prefetch(const BoxNode& node) const
    {
        const bool is_leaf = node.n_blocks > 0;
        const std::size_t size = tree_.block_size(is_leaf ? leaf_lanes : child_lanes);
        const std::size_t block = is_leaf ? node.first : (node.first + 1) / child_lanes;
        const auto* bytes =
            reinterpret_cast<const char*>((is_leaf ? tree_.box_ends : tree_.node_ends).data() + block * size);
        const std::size_t n_bytes = std::max<std::size_t>(node.n_blocks, 1) * size * sizeof(End);
        for (std::size_t line = 0; line < n_bytes && line < most_prefetched; line += 64)
            __builtin_prefetch(bytes + line);
    }

    void measure_boxes(std::size_t block)
    {
        const End* ends = &tree_.box_ends[block * tree_.block_size(leaf_lanes)];
        const auto distances = ruler_.template totals<leaf_lanes>(ends);
        for (std::size_t lane = 0; lane < leaf_lanes; ++lane)
        {
            const std::size_t slot = block * leaf_lanes + lane;
            // A spare lane is as far as the first, which came before it and has a lower index.
            if (!found_.loses_to(distances[lane], tree_.order[slot]))
                continue;
            found_.total = distances[lane];
            found_.index = tree_.order[slot];
            found_.slot = slot;
        }
    }

    const Tree& tree_;
    const Norm norm_;
    const Query& query_;
    const Ruler<End, Norm> ruler_;
    Heap& heap_;
    Found found_;
};

template <class End>
void project(const IndexedBoxes<End>& tree, const double* point, std::size_t slot, double* projection)
{
    const End* lane = &tree.box_ends[slot / leaf_lanes * tree.block_size(leaf_lanes) + slot % leaf_lanes];
    for (std::size_t feature = 0; feature < tree.n_features; ++feature, lane += 2 * leaf_lanes)
        projection[feature] = std::clamp(point[feature], tree.number(2 * feature, lane[0]),
                                         tree.number(2 * feature + 1, lane[leaf_lanes]));
}

template <class End, class Norm>
NearestBoxes answer_all(const IndexedBoxes<End>& tree, const Norm& norm, std::span<const double> points,
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
        const Found found = Search<End, Norm>(tree, norm, query, heap).answer();
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
