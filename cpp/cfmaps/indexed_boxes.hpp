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

// What stands for the interval of a box on a feature.

/// Two numbers.
struct Numbers
{
    using Code = double;
    static constexpr std::size_t width = 2;
};

/// Two codes, of the lower and the upper end.
struct EndCodes
{
    using Code = std::uint16_t;
    static constexpr std::size_t width = 2;
};

/// One code for both ends: n cells in a row make n (n + 1) / 2 intervals, so that 22 cells fit a byte.
struct IntervalCodes
{
    using Code = std::uint8_t;
    static constexpr std::size_t width = 1;
    /// All terms of a query stay in the first cache.
    static constexpr std::size_t most_intervals = 4096, most_per_feature = 256;
};

/// A tree over boxes.
template <class Kind>
struct IndexedBoxes
{
    using Code = Kind::Code;

    std::size_t n_features = 0;
    std::size_t n_boxes = 0;
    /// The root first, then siblings side by side.
    std::vector<BoxNode> nodes;
    /// Tight boxes of the nodes in blocks of two siblings; the root is the second of the first block.
    std::vector<Code> node_ends;
    /// Blocks of leaf_lanes boxes, leaf after leaf, and per lane the caller's index. A lane to spare repeats the first
    /// box of its block as no_box.
    std::vector<Code> box_ends;
    std::vector<std::uint32_t> order;
    /// What codes stand for: per feature a table of lower ends, then a table of upper ends.
    std::vector<double> ends;
    std::vector<std::uint32_t> first;

    /// Per feature the lower ends of a block's lanes, then their upper ends; or the intervals of its lanes.
    std::size_t block_size(std::size_t lanes) const { return lane_of(n_features, lanes); }
    static std::size_t lane_of(std::size_t feature, std::size_t lanes) { return Kind::width * lanes * feature; }

    double lower([[maybe_unused]] std::size_t feature, const Code* lane) const
    {
        if constexpr (std::is_same_v<Kind, Numbers>)
            return lane[0];
        else
            return ends[first[2 * feature] + lane[0]];
    }
    double upper([[maybe_unused]] std::size_t feature, const Code* lane, std::size_t lanes) const
    {
        const Code code = lane[(Kind::width - 1) * lanes];
        if constexpr (std::is_same_v<Kind, Numbers>)
            return code;
        else
            return ends[first[2 * feature + 1] + code];
    }
    std::size_t n_bytes() const
    {
        return nodes.capacity() * sizeof(BoxNode) + (node_ends.capacity() + box_ends.capacity()) * sizeof(Code) +
               order.capacity() * sizeof(std::uint32_t) + ends.capacity() * sizeof(double) +
               first.capacity() * sizeof(std::uint32_t);
    }
};

}  // namespace cfmaps
