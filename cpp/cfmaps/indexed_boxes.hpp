#pragma once
// How a BoxTree lies in memory.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace cfmaps
{

/// Boxes of a leaf lie side by side in lanes, so that one instruction measures several of them; so do two siblings.
inline constexpr std::size_t leaf_lanes = 4, child_lanes = 2;

/// No box; greater than the index of any box.
inline constexpr std::uint32_t no_box = std::numeric_limits<std::uint32_t>::max();

struct BoxNode
{
    std::uint32_t first;     // the first of two adjacent children, or of a leaf's blocks
    std::uint32_t n_blocks;  // 0 in an inner node
    std::uint32_t lowest;    // the smallest index of a box below
};

/// A tree over boxes whose ends are numbers, or codes of numbers that stand in tables.
template <class End>
struct IndexedBoxes
{
    static constexpr bool is_coded = !std::is_same_v<End, double>;

    std::size_t n_features = 0;
    std::size_t n_boxes = 0;
    /// The root first, then siblings side by side.
    std::vector<BoxNode> nodes;
    /// Tight boxes of the nodes in blocks of two siblings; the root is the second of the first block.
    std::vector<End> node_ends;
    /// Blocks of leaf_lanes boxes, leaf after leaf, and per lane the caller's index. A lane to spare repeats the first
    /// box of its block as no_box.
    std::vector<End> box_ends;
    std::vector<std::uint32_t> order;
    /// As in CodedBoxes; empty when the ends are numbers.
    std::vector<double> ends;
    std::vector<std::uint32_t> first;

    /// Per feature the lower ends of a block's lanes, then their upper ends.
    std::size_t block_size(std::size_t lanes) const { return 2 * lanes * n_features; }

    double number([[maybe_unused]] std::size_t table, End end) const
    {
        if constexpr (is_coded)
            return ends[first[table] + end];
        else
            return end;
    }
    std::size_t n_bytes() const
    {
        return nodes.capacity() * sizeof(BoxNode) + (node_ends.capacity() + box_ends.capacity()) * sizeof(End) +
               order.capacity() * sizeof(std::uint32_t) + ends.capacity() * sizeof(double) +
               first.capacity() * sizeof(std::uint32_t);
    }
};

}  // namespace cfmaps
