#include "simplex.hpp"

#include <algorithm>
#include <cmath>

namespace cfmaps
{
namespace
{
constexpr double tiny = 1e-11;  // entries below it come from rounding; what follows from the result is checked again
constexpr size_t most_pivots = 500;
}  // namespace

Simplex::Simplex(std::vector<double> costs) : costs_(std::move(costs))
{
}

void Simplex::add_row(std::vector<double> row, double most)
{
    rows_.push_back(std::move(row));
    most_.push_back(most);
}

void Simplex::lay_out()
{
    table_.assign(rows_.size() + 1, std::vector<double>(width(), 0.0));
    basis_.resize(rows_.size());
    for (size_t row = 0; row < rows_.size(); ++row)
    {
        std::copy(rows_[row].begin(), rows_[row].end(), table_[row].begin());
        table_[row][costs_.size() + row] = 1;
        table_[row].back() = most_[row];
        basis_[row] = costs_.size() + row;
    }
    std::copy(costs_.begin(), costs_.end(), table_.back().begin());
}

int Simplex::leaving() const
{
    int worst = -1;
    for (size_t row = 0; row < rows_.size(); ++row)
        if (table_[row].back() < -tiny * (1 + std::abs(most_[row])) &&
            (worst < 0 || table_[row].back() < table_[worst].back()))
            worst = static_cast<int>(row);
    return worst;
}

int Simplex::entering(size_t row) const
{
    int best = -1;
    double least = 0;
    for (size_t column = 0; column + 1 < width(); ++column)
    {
        if (table_[row][column] >= -tiny)
            continue;
        const double ratio = table_.back()[column] / -table_[row][column];
        if (best < 0 || ratio < least)
        {
            best = static_cast<int>(column);
            least = ratio;
        }
    }
    return best;
}

void Simplex::pivot(size_t row, size_t column)
{
    const double scale = table_[row][column];
    for (double& entry : table_[row])
        entry /= scale;
    for (size_t other = 0; other < table_.size(); ++other)
    {
        const double factor = table_[other][column];
        if (other == row || factor == 0)
            continue;
        for (size_t entry = 0; entry < width(); ++entry)
            table_[other][entry] -= factor * table_[row][entry];
        table_[other][column] = 0;
    }
    basis_[row] = column;
}

Simplex::Result Simplex::solve()
{
    lay_out();
    const auto slacks = [&](size_t row)
    { return std::vector<double>(table_[row].begin() + costs_.size(), table_[row].end() - 1); };
    for (size_t n_pivots = 0; n_pivots < most_pivots; ++n_pivots)
    {
        const int row = leaving();
        if (row < 0)
        {
            duals_ = slacks(rows_.size());
            return Result::optimal;
        }
        const int column = entering(row);
        if (column < 0)
        {
            duals_ = slacks(row);
            return Result::empty;
        }
        pivot(row, column);
    }
    return Result::stalled;
}

std::vector<double> Simplex::point() const
{
    std::vector<double> values(costs_.size(), 0.0);
    for (size_t row = 0; row < rows_.size(); ++row)
        if (basis_[row] < costs_.size())
            values[basis_[row]] = table_[row].back();
    return values;
}
}  // namespace cfmaps
