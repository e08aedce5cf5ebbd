#include "costs.hpp"

#include <cmath>

namespace cfmaps
{
bool Norm::is_maximum() const
{
    return std::isinf(power);
}

double Norm::raise(double gap) const
{
    if (power == 1 || is_maximum())
        return gap;
    return power == 2 ? gap * gap : std::pow(gap, power);
}

double Norm::root(double cost) const
{
    if (power == 1 || is_maximum())
        return cost;
    return power == 2 ? std::sqrt(cost) : std::pow(cost, 1 / power);
}

/// The cell of a value among the first cells of an axis: beyond them or between two, the nearest.
static uint32_t cell_of(const double* low, const double* high, size_t n_cells, double value)
{
    size_t cell = std::lower_bound(high, high + n_cells, value) - high;
    if (cell == n_cells || (cell > 0 && low[cell] > value && value - high[cell - 1] <= low[cell] - value))
        --cell;
    return static_cast<uint32_t>(cell);
}

/// Cells of an axis that hold numbers; a cell for missing values is the last.
static size_t n_numbers(const Lattice& lattice, size_t axis)
{
    const size_t n_cells = lattice.n_cells[axis];
    return n_cells - std::isnan(lattice.low[lattice.cell_start[axis] + n_cells - 1]);
}

uint32_t category_of(const Lattice& lattice, size_t axis, const double* row)
{
    if (lattice.is_coded(axis))
    {
        const size_t first = lattice.cell_start[axis], n_cells = n_numbers(lattice, axis);
        const double value = row[lattice.columns[axis][0]];
        return std::isnan(value) ? static_cast<uint32_t>(n_cells)
                                 : cell_of(&lattice.low[first], &lattice.high[first], n_cells, value);
    }
    const auto& columns = lattice.columns[axis];
    for (uint32_t category = 0; category < columns.size(); ++category)
        if (row[columns[category]] == 1)
            return category;
    return static_cast<uint32_t>(columns.size());
}

Costs::Costs(const Lattice& lattice, const Norm& norm)
    : lattice_(lattice), norm_(norm), cost_(lattice.low.size()), home_(lattice.n_axes())
{
}

void Costs::prepare(const double* row, double unit)
{
    unit_ = unit;
    is_inside_ = true;
    for (size_t axis = 0; axis < lattice_.n_axes(); ++axis)
    {
        if (lattice_.is_ordered(axis))
            prepare_ordered(axis, row[lattice_.columns[axis][0]]);
        else
            prepare_categorical(axis, row);
    }
}

void Costs::prepare_ordered(size_t axis, double value)
{
    if (std::isnan(value))  // one cell, that of missing values
    {
        home_[axis] = 0;
        cost_[lattice_.cell_start[axis]] = 0;
        return;
    }
    prepare_numbers(axis, lattice_.n_cells[axis], value);
}

void Costs::prepare_numbers(size_t axis, size_t n_cells, double value)
{
    const size_t first = lattice_.cell_start[axis];
    const double* low = &lattice_.low[first];
    const double* high = &lattice_.high[first];
    const double weight = norm_.weights[lattice_.columns[axis][0]] / unit_;
    double* cost = &cost_[first];
    const size_t home = cell_of(low, high, n_cells, value);
    home_[axis] = static_cast<uint32_t>(home);
    is_inside_ = is_inside_ && low[home] <= value && value <= high[home];
    cost[home] = norm_.raise(weight * std::max({low[home] - value, value - high[home], 0.0}));
    for (size_t cell = home; cell-- > 0;)  // std::pow need not be monotone in its last digit; a search must be
        cost[cell] = std::max(norm_.raise(weight * (value - high[cell])), cost[cell + 1]);
    for (size_t cell = home + 1; cell < n_cells; ++cell)
        cost[cell] = std::max(norm_.raise(weight * (low[cell] - value)), cost[cell - 1]);
}

void Costs::prepare_categorical(size_t axis, const double* row)
{
    const size_t first = lattice_.cell_start[axis], n_cells = lattice_.n_cells[axis];
    const double scale = norm_.raise(1 / unit_);
    const auto& costs = norm_.category_costs[axis];
    const uint32_t home = category_of(lattice_, axis, row);
    home_[axis] = home;
    if (costs.size() == n_cells * n_cells)
    {
        for (size_t cell = 0; cell < n_cells; ++cell)
            cost_[first + cell] = scale * costs[home * n_cells + cell];
        return;
    }
    // Numbers, then missing values: the only cost given is that of going from the ones to the other.
    const size_t missing = n_cells - 1;
    if (home < missing)
        prepare_numbers(axis, missing, row[lattice_.columns[axis][0]]);
    else
        std::fill_n(&cost_[first], missing, scale * costs[0]);
    cost_[first + missing] = home < missing ? scale * costs[0] : 0;
    if (cost_[first + missing] < cost_[first + home_[axis]])  // cheaper than going back within the limits
        home_[axis] = static_cast<uint32_t>(missing);
}

uint32_t Costs::nearest(ConstBox box, size_t axis) const
{
    const uint64_t word = box[lattice_.word_start[axis]];
    if (lattice_.is_ordered(axis))
        return std::clamp(home_[axis], low_end(word), high_end(word));
    uint32_t best = lattice_.n_cells[axis];
    each_cell(lattice_, box, axis,
              [&](uint32_t category)
              {
                  if (best == lattice_.n_cells[axis] || cell(axis, category) < cell(axis, best))
                      best = category;
              });
    return best;
}
}  // namespace cfmaps
