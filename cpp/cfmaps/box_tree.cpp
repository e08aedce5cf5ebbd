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

/// The total of each box of a block. Bounds of nodes and distances of boxes both come from here: as a node's box
/// contains its boxes and every step is monotone, no bound exceeds a total below it, and the search is exact.
template <std::size_t lanes, class Norm>
std::array<double, lanes> totals(const Norm& norm, const Query& query, const double* block)
{
    Pair total[lanes / 2] = {};
    for (std::size_t feature = 0; feature < query.n_features; ++feature, block += 2 * lanes)
        for (std::size_t pair = 0; pair < lanes / 2; ++pair)
        {
            const double* lower = block + 2 * pair;
            const Pair distance = gap(query.point[feature], load(lower), load(lower + lanes));
            total[pair] = norm.join(total[pair], norm.term(query.weights[feature] * distance));
        }
    std::array<double, lanes> result;
    std::memcpy(result.data(), total, sizeof result);
    return result;
}

/// Within these, a sum of powers has lost no digit to underflow or overflow.
constexpr double smallest_total = 0x1p-900, largest_total = 0x1p+1000;

/// The best box so far, as a total of powers, and what is known of all that was not opened.
struct Found
{
    double total = infinity;
    std::uint32_t index = BoxTree::nothing;
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

}  // namespace

/// One best-first search (paper, Algorithm 2).
template <class Norm>
class BoxTree::Search
{
public:
    Search(const BoxTree& tree, const Norm& norm, const Query& query, Heap& heap)
        : tree_(tree), norm_(norm), query_(query), heap_(heap)
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
        const Found widest = Search<Chebyshev>(tree_, {}, query_, heap_).answer();
        if (widest.total == 0.0 || widest.total == infinity)
            return widest;
        return Search<Scaled<Norm>>(tree_, {norm_, widest.total}, query_, heap_).answer();
    }

    void search()
    {
        heap_.clear();
        if (!tree_.nodes_.empty())
            push(heap_, {0.0, tree_.nodes_[0].lowest, 0});
        while (!heap_.empty())
        {
            const Open nearest = pop(heap_);
            if (!found_.loses_to(nearest.bound, nearest.lowest))
            {
                found_.leave_unopened(nearest.bound);
                break;  // every unopened node is at least this far: the best box is optimal
            }
            open(tree_.nodes_[nearest.node]);
        }
    }

    void open(const Node& node)
    {
        ++found_.visited;
        if (node.n_blocks == 0)
            open_children(node.first);
        for (std::size_t block = node.first; block < std::size_t{node.first} + node.n_blocks; ++block)
            measure_boxes(block);
    }

    void open_children(std::uint32_t child)
    {
        const double* block = &tree_.node_bounds_[(child + 1) / child_lanes * tree_.block_size(child_lanes)];
        const auto distances = totals<child_lanes>(norm_, query_, block);
        for (std::uint32_t lane = 0; lane < child_lanes; ++lane)
        {
            const Open open{norm_.bound(distances[lane]), tree_.nodes_[child + lane].lowest, child + lane};
            if (found_.loses_to(open.bound, open.lowest))
                push(heap_, open);
            else
                found_.leave_unopened(open.bound);
        }
    }

    void measure_boxes(std::size_t block)
    {
        const auto distances = totals<leaf_lanes>(norm_, query_, &tree_.boxes_[block * tree_.block_size(leaf_lanes)]);
        for (std::size_t lane = 0; lane < leaf_lanes; ++lane)
        {
            const std::size_t slot = block * leaf_lanes + lane;
            if (!found_.loses_to(distances[lane], tree_.order_[slot]))
                continue;
            found_.total = distances[lane];
            found_.index = tree_.order_[slot];
            found_.slot = slot;
        }
    }

    const BoxTree& tree_;
    const Norm norm_;
    const Query& query_;
    Heap& heap_;
    Found found_;
};

NearestBoxes BoxTree::nearest(std::span<const double> points, std::span<const double> weights, double p,
                              const Poll& poll) const
{
    assert(points.size() % n_features_ == 0 && weights.size() == n_features_ && p >= 1.0);
    if (p == 1.0)
        return answer_all(Manhattan{}, points, weights, poll);
    if (p == 2.0)
        return answer_all(Euclid{}, points, weights, poll);
    if (p > largest_power)
        return answer_all(Chebyshev{}, points, weights, poll);
    if (p == std::floor(p))
        return answer_all(WholePower(p), points, weights, poll);
    return answer_all(RealPower(p, n_features_), points, weights, poll);
}

template <class Norm>
NearestBoxes BoxTree::answer_all(const Norm& norm, std::span<const double> points, std::span<const double> weights,
                                 const Poll& poll) const
{
    const std::size_t n_rows = points.size() / n_features_;
    NearestBoxes answers(n_rows, n_features_);
    Heap heap;
    for (std::size_t row = 0; row < n_rows; ++row)
    {
        if (poll)
            poll();
        const double* point = points.data() + row * n_features_;
        const Found found = Search<Norm>(*this, norm, {point, weights.data(), n_features_}, heap).answer();
        answers.distance[row] = found.total;
        answers.visited[row] = found.visited;
        answers.bound[row] = found.bound;
        if (found.index == nothing)
            continue;
        answers.index[row] = found.index;
        project(point, found.slot, &answers.point[row * n_features_]);
    }
    return answers;
}

void BoxTree::project(const double* point, std::size_t slot, double* projection) const
{
    const double* lane = &boxes_[slot / leaf_lanes * block_size(leaf_lanes) + slot % leaf_lanes];
    for (std::size_t feature = 0; feature < n_features_; ++feature, lane += 2 * leaf_lanes)
        projection[feature] = std::clamp(point[feature], lane[0], lane[leaf_lanes]);
}

std::size_t BoxTree::n_bytes() const
{
    return sizeof(*this) + nodes_.capacity() * sizeof(Node) + node_bounds_.capacity() * sizeof(double) +
           boxes_.capacity() * sizeof(double) + order_.capacity() * sizeof(std::uint32_t);
}

}  // namespace cfmaps
