#pragma once
// Boxes whose corners repeat a few numbers, which codes can name.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cfmaps
{

/// Closed boxes by the codes of their ends: per feature a table of lower ends and a table of upper ends.
struct CodedBoxes
{
    /// Tables of this many numbers in all stay in the first cache while a query reads them.
    static constexpr std::size_t most_ends = 4096;

    explicit CodedBoxes(std::size_t features) : n_features(features) {}

    std::size_t n_features;
    std::vector<std::uint16_t> codes;  // per box and feature the code of the lower end, then of the upper end
    std::vector<double> ends;          // table after table, lower and upper by turns
    std::vector<std::uint32_t> first;  // of each table, and one past the last

    std::size_t n_boxes() const { return codes.size() / (2 * n_features); }
    std::size_t table_size(std::size_t table) const { return first[table + 1] - first[table]; }
    double end(std::size_t box, std::size_t table) const
    {
        return ends[first[table] + codes[box * 2 * n_features + table]];
    }
    void add_table(std::span<const double> numbers);
};

/// Codes the ends of boxes given row after row; nothing when they are too many for codes to pay.
std::optional<CodedBoxes> code_boxes(std::size_t n_features, std::span<const double> lower,
                                     std::span<const double> upper);

}  // namespace cfmaps
