#pragma once

#include "cfmaps/coded_boxes.hpp"
#include "cfmaps/indexed_boxes.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <variant>
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

    /// Corners are given row after row, one row of n_features numbers per box, lower <= upper.
    BoxTree(std::size_t n_features, std::span<const double> lower, std::span<const double> upper, std::size_t leaf_size,
            const Poll& poll = {});
    /// A box's index is its place among the coded boxes.
    BoxTree(const CodedBoxes& boxes, std::size_t leaf_size, const Poll& poll = {});

    /// The box nearest to each point in the norm ||weights * (point - y)||_p, the lowest index among equals.
    NearestBoxes nearest(std::span<const double> points, std::span<const double> weights, double p,
                         const Poll& poll = {}) const;

    std::size_t n_features() const;
    std::size_t n_boxes() const;
    std::size_t n_nodes() const;
    std::size_t n_bytes() const;

private:
    std::variant<IndexedBoxes<Numbers>, IndexedBoxes<EndCodes>, IndexedBoxes<IntervalCodes>> tree_;
};

}  // namespace cfmaps
