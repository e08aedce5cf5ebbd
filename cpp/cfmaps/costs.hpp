#pragma once
// What each cell costs one query, and sums of such costs that never depend on the order of the search.

#include "lattice.hpp"

#include <algorithm>

namespace cfmaps
{
/// A norm over the columns of the model. Costs are p-th powers of weighted gaps (plain gaps for the maximum norm).
struct Norm
{
    double power = 1;  // infinity for the maximum norm
    std::vector<double> weights;
    std::vector<std::vector<double>> category_costs;  // per axis, from x to: what changing the category costs, powered

    bool is_maximum() const;
    double raise(double gap) const;
    double root(double cost) const;
};

/// Joins one cost an axis into a total, pairwise in a fixed tree: adding and taking the larger are monotone under
/// rounding, so a box never seems farther than a point in it, and one change costs log2(axes) steps.
class Total
{
public:
    Total(size_t n_axes, bool maximum)
        : width_(std::bit_ceil(std::max<size_t>(n_axes, 1))), n_axes_(n_axes), maximum_(maximum)
    {
        tree_.assign(2 * width_, 0.0);
    }

    double value() const { return tree_[1]; }
    double cost(size_t axis) const { return tree_[width_ + axis]; }
    std::span<const double> costs() const { return {&tree_[width_], n_axes_}; }

    /// The total if one axis cost this much.
    double with(size_t axis, double cost) const
    {
        size_t at = width_ + axis;
        if (maximum_)
            for (; at > 1; at /= 2)
                cost = std::max(cost, tree_[at ^ 1]);
        else
            for (; at > 1; at /= 2)
                cost += tree_[at ^ 1];
        return cost;
    }

    void set(size_t axis, double cost)
    {
        size_t at = width_ + axis;
        tree_[at] = cost;
        for (at /= 2; at > 0; at /= 2)
            tree_[at] = join(tree_[2 * at], tree_[2 * at + 1]);
    }

    /// Sets all axes at once.
    template <class CostOf>
    void set_all(CostOf cost_of)
    {
        for (size_t axis = 0; axis < n_axes_; ++axis)
            tree_[width_ + axis] = cost_of(axis);
        if (maximum_)
            for (size_t at = width_ - 1; at > 0; --at)
                tree_[at] = std::max(tree_[2 * at], tree_[2 * at + 1]);
        else
            for (size_t at = width_ - 1; at > 0; --at)
                tree_[at] = tree_[2 * at] + tree_[2 * at + 1];
    }

private:
    double join(double a, double b) const { return maximum_ ? std::max(a, b) : a + b; }

    size_t width_, n_axes_;
    bool maximum_;
    std::vector<double> tree_;
};

/// The costs of one query's cells. Along an ordered axis they only grow with the way from the query's own cell.
class Costs
{
public:
    Costs(const Lattice& lattice, const Norm& norm);

    /// Prepares for a row; `unit` divides gaps before they are raised.
    void prepare(const double* row, double unit = 1);

    const double* all() const { return cost_.data(); }
    const double& cell(size_t axis, uint32_t cell) const { return cost_[lattice_.cell_start[axis] + cell]; }
    uint32_t home(size_t axis) const { return home_[axis]; }
    const std::vector<uint32_t>& homes() const { return home_; }
    /// Orders the cells of an axis among equal costs, which rounding makes of a huge number's: those nearer home first.
    uint32_t steps(size_t axis, uint32_t cell) const
    {
        if (!lattice_.is_ordered(axis))
            return cell;
        return cell > home_[axis] ? 2 * (cell - home_[axis]) - 1 : 2 * (home_[axis] - cell);
    }
    /// Whether the row lies in its home cells; a value beyond the limits of its axis does not.
    bool is_inside() const { return is_inside_; }
    const Norm& norm() const { return norm_; }
    const Lattice& lattice() const { return lattice_; }
    double root(double cost) const { return unit_ * norm_.root(cost); }
    double raised(double distance) const { return norm_.raise(distance / unit_); }

    /// The cheapest cell of an axis in a box, the first among equals.
    uint32_t nearest(ConstBox box, size_t axis) const;

private:
    void prepare_ordered(size_t axis, double value);
    void prepare_numbers(size_t axis, size_t n_cells, double value);
    void prepare_categorical(size_t axis, const double* row);

    const Lattice& lattice_;
    const Norm& norm_;
    double unit_ = 1;
    bool is_inside_ = true;
    std::vector<double> cost_;
    std::vector<uint32_t> home_;
};

/// The category of a row, or the cell of "none".
uint32_t category_of(const Lattice& lattice, size_t axis, const double* row);
}  // namespace cfmaps
