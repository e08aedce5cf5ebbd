#include "cfmaps/coded_boxes.hpp"

#include <algorithm>

namespace cfmaps
{
namespace
{

/// The distinct numbers of a column, sorted; more than `most` of them when there are more than that.
std::vector<double> distinct(std::span<const double> rows, std::size_t column, std::size_t stride, std::size_t most)
{
    std::vector<double> numbers;
    for (std::size_t place = column; place < rows.size() && numbers.size() <= most; place += stride)
    {
        // -0.0 and 0.0 are one end: no distance tells them apart.
        const auto where = std::lower_bound(numbers.begin(), numbers.end(), rows[place]);
        if (where == numbers.end() || *where != rows[place])
            numbers.insert(where, rows[place]);
    }
    return numbers;
}

void write_codes(CodedBoxes& boxes, std::span<const double> rows, std::size_t feature, std::size_t table)
{
    const std::span numbers(boxes.ends.data() + boxes.first[table], boxes.table_size(table));
    for (std::size_t place = feature, box = 0; place < rows.size(); place += boxes.n_features, ++box)
    {
        const auto where = std::lower_bound(numbers.begin(), numbers.end(), rows[place]);
        boxes.codes[box * 2 * boxes.n_features + table] = static_cast<std::uint16_t>(where - numbers.begin());
    }
}

}  // namespace

void CodedBoxes::add_table(std::span<const double> numbers)
{
    if (first.empty())
        first.push_back(0);
    ends.insert(ends.end(), numbers.begin(), numbers.end());
    first.push_back(static_cast<std::uint32_t>(ends.size()));
}

std::optional<CodedBoxes> code_boxes(std::size_t n_features, std::span<const double> lower,
                                     std::span<const double> upper)
{
    CodedBoxes boxes(n_features);
    // A query reads every table once: where that is as much as reading the boxes, codes are no gain.
    const std::size_t most = std::min(CodedBoxes::most_ends, lower.size() / 4);
    for (std::size_t feature = 0; feature < n_features; ++feature)
        for (const auto rows : {lower, upper})
        {
            boxes.add_table(distinct(rows, feature, n_features, most - boxes.ends.size()));
            if (boxes.ends.size() > most)
                return std::nullopt;
        }
    boxes.codes.resize(2 * lower.size());
    for (std::size_t feature = 0; feature < n_features; ++feature)
    {
        write_codes(boxes, lower, feature, 2 * feature);
        write_codes(boxes, upper, feature, 2 * feature + 1);
    }
    return boxes;
}

}  // namespace cfmaps
