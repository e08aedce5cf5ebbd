#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace cfmaps
{

/// Called now and then by long work; what it throws stops the work.
using Poll = std::function<void()>;

/// What a search found for each row; a row without any box has index -1, NaN as point and inf elsewhere.
struct NearestBoxes
{
    NearestBoxes(std::size_t n_rows, std::size_t n_features)
        : index(n_rows, -1), distance(n_rows), point(n_rows * n_features, std::numeric_limits<double>::quiet_NaN()),
          visited(n_rows), bound(n_rows)
    {
    }

    std::vector<std::int64_t> index;
    std::vector<double> distance;
    std::vector<double> point;  // row after row
    std::vector<std::int64_t> visited;
    std::vector<double> bound;
};

/// Volumetric KD-tree over closed boxes (paper, Algorithm 1, second half), searched best first (Algorithm 2).
class BoxTree
{
public:
    /// Nodes are numbered in 32 bits, and a tree has fewer than two per box.
    static constexpr std::size_t most_boxes = std::size_t{1} << 31;
    /// No box; greater than the index of any box.
    static constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();

    /// Corners are given row after row, one row of n_features numbers per box, lower <= upper.
    BoxTree(std::size_t n_features, std::span<const double> lower, std::span<const double> upper, std::size_t leaf_size,
            const Poll& poll = {});

    /// The box nearest to each point in the norm ||weights * (point - y)||_p, the lowest index among equals.
    NearestBoxes nearest(std::span<const double> points, std::span<const double> weights, double p,
                         const Poll& poll = {}) const;

    std::size_t n_features() const { return n_features_; }
    std::size_t n_boxes() const { return n_boxes_; }
    std::size_t n_nodes() const { return nodes_.size(); }
    std::size_t n_bytes() const;

private:
    class Builder;
    template <class Norm>
    class Search;

    /// Boxes of a leaf lie side by side in lanes, so that one instruction measures several of them.
    static constexpr std::size_t leaf_lanes = 4;
    static constexpr std::size_t child_lanes = 2;

    struct Node
    {
        std::uint32_t first;     // the first of two adjacent children, or of a leaf's blocks
        std::uint32_t n_blocks;  // 0 in an inner node
        std::uint32_t lowest;    // the smallest index of a box below
    };

    /// Per feature the lower ends of a block's lanes, then their upper ends.
    std::size_t block_size(std::size_t lanes) const { return 2 * lanes * n_features_; }
    template <class Norm>
    NearestBoxes answer_all(const Norm& norm, std::span<const double> points, std::span<const double> weights,
                            const Poll& poll) const;
    void project(const double* point, std::size_t slot, double* projection) const;

    std::size_t n_features_;
    std::size_t n_boxes_;
    /// The root first, then siblings side by side.
    std::vector<Node> nodes_;
    /// Tight boxes of the nodes in blocks of two siblings; the root is the second of the first block.
    std::vector<double> node_bounds_;
    /// Blocks of leaf_lanes boxes, leaf after leaf, and per lane the caller's index.
    std::vector<double> boxes_;
    std::vector<std::uint32_t> order_;
};

}  // namespace cfmaps
