#include "relation.hpp"

#include "simplex.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace cfmaps
{
namespace
{
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double certain = 1 - 0x1p-40;  // bounds give way by more than all rounding together
constexpr double error = 0x1p-44;
constexpr int most_halvings = 2100;  // of a float64 range
constexpr int most_sweeps = 400;
constexpr int most_tightenings = 4;

/// Adds a number to a sum kept without rounding: parts that do not overlap, the smallest first (Shewchuk 1997).
void add_exactly(std::vector<double>& parts, double number)
{
    size_t n_kept = 0;
    for (double part : parts)
    {
        const double sum = number + part, virtual_part = sum - number;
        const double rest = (number - (sum - virtual_part)) + (part - virtual_part);
        if (rest != 0)
            parts[n_kept++] = rest;
        number = sum;
    }
    parts.resize(n_kept);
    parts.push_back(number);
}

/// Between the least pressure known to suffice and the most known not to: the first float64 that does.
template <class Suffices>
double least_sufficient(double low, double high, Suffices suffices)
{
    for (int halving = 0; halving < most_halvings; ++halving)
    {
        const double middle = low > 0 && high > 4 * low ? std::sqrt(low) * std::sqrt(high) : low + (high - low) / 2;
        if (!(low < middle && middle < high))
            break;
        (suffices(middle) ? high : low) = middle;
    }
    return high;
}
}  // namespace

double Variable::nearest() const
{
    return std::clamp(x, low, high);
}

bool holds_exactly(std::span<const double> a, std::span<const double> z, double most)
{
    std::vector<double> parts;
    add_exactly(parts, -most);
    for (size_t i = 0; i < a.size(); ++i)
    {
        if (a[i] == 0)
            continue;
        const double product = a[i] * z[i];
        add_exactly(parts, std::fma(a[i], z[i], -product));
        add_exactly(parts, product);
    }
    return parts.back() <= 0;
}

double Projection::value(const Inequality& inequality) const
{
    return std::inner_product(point_.begin(), point_.end(), inequality.share.begin(), -inequality.most);
}

double Projection::cost() const
{
    double total = std::isinf(power_) ? base_ : 0;
    for (size_t i = 0; i < variables_.size(); ++i)
    {
        const double gap = variables_[i].gap(point_[i]);
        total = std::isinf(power_) ? std::max(total, gap) : total + std::pow(gap, power_);
    }
    return total;
}

Projection::Result Projection::solve(std::span<const Variable> variables, std::span<const Inequality> inequalities,
                                     double power, double base)
{
    variables_.assign(variables.begin(), variables.end());
    inequalities_ = inequalities;
    power_ = power;
    base_ = base;
    start_.resize(variables.size());
    for (size_t i = 0; i < variables.size(); ++i)
        start_[i] = variables[i].nearest();
    multiplier_.assign(inequalities.size(), 0.0);
    bound_ = 0;
    for (size_t row = 0; row < inequalities.size(); ++row)  // one alone often implies the others
    {
        const Result alone = solve_one(inequalities[row], true);
        if (alone != Result::found)
            return alone;
        const auto others = [&](const Inequality& other) { return &other == &inequalities[row] || value(other) <= 0; };
        if (std::all_of(inequalities.begin(), inequalities.end(), others))
        {
            multiplier_[row] = 1;
            return Result::found;
        }
    }
    return solve_all();
}

/// The optimum over box and one relation. `is_exact` tells whether the relation is one of those given or a sum.
Projection::Result Projection::solve_one(const Inequality& inequality, bool is_exact)
{
    point_ = start_;
    const double excess = value(inequality);
    std::vector<double> least(start_);
    double size = std::abs(inequality.most);
    for (size_t i = 0; i < start_.size(); ++i)
    {
        if (inequality.share[i] != 0)
            least[i] = inequality.share[i] > 0 ? variables_[i].low : variables_[i].high;
        size += std::abs(inequality.share[i] * least[i]);
    }
    if (excess > 0)
    {
        if (is_exact ? !holds_exactly(inequality.share, least, inequality.most)
                     : std::inner_product(least.begin(), least.end(), inequality.share.begin(), -inequality.most) >
                           size * error)
            return Result::empty;
        if (power_ == 1)
            go_greedily(inequality, excess);
        else
            go_evenly(inequality);
    }
    bound_ = std::max(bound_, cost() * certain);
    return Result::found;
}

/// L1: the cheapest way to make up for the excess is to use the variables one after the other, by cost per effect.
void Projection::go_greedily(const Inequality& inequality, double excess)
{
    order_.clear();
    for (size_t i = 0; i < start_.size(); ++i)
        if (inequality.share[i] != 0)
            order_.push_back(i);
    const auto price = [&](size_t i)
    {
        const double share = inequality.share[i];
        return (share > 0 ? variables_[i].down : variables_[i].up) / std::abs(share);
    };
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return price(a) < price(b); });
    for (size_t i : order_)
    {
        const double share = inequality.share[i];
        const double end = share > 0 ? variables_[i].low : variables_[i].high;
        const double room = std::abs(share) * std::abs(end - start_[i]);
        point_[i] = room <= excess ? end : start_[i] - excess / share;
        excess -= room;
        if (excess <= 0)
            return;
    }
}

/// Any other norm: every variable goes as far as one common pressure takes it, and that is the least that suffices.
void Projection::go_evenly(const Inequality& inequality)
{
    const auto suffices = [&](double pressure)
    {
        move(inequality, pressure);
        return value(inequality) <= 0;
    };
    double low = std::isinf(power_) ? base_ : 0, high = std::max(low * 2, std::numeric_limits<double>::min());
    for (size_t i = 0; i < start_.size() && std::isinf(power_); ++i)
        low = std::max(low, variables_[i].gap(start_[i]));
    high = std::max(high, low);
    while (!suffices(high) && high < std::numeric_limits<double>::max() / 16)
    {
        low = std::max(low, high);
        high *= 16;
    }
    move(inequality, least_sufficient(low, high, suffices));
}

/// Where a pressure takes the variables: a radius for the maximum norm, a multiplier for all others.
void Projection::move(const Inequality& inequality, double pressure)
{
    for (size_t i = 0; i < start_.size(); ++i)
    {
        const double share = inequality.share[i];
        if (share == 0)
            continue;
        const Variable& variable = variables_[i];
        const double weight = share > 0 ? variable.down : variable.up;
        double gap = pressure / weight;
        if (!std::isinf(power_))  // the derivative of (weight * gap)^power is pressure * share
            gap = std::pow(pressure * std::abs(share) / (power_ * weight), 1 / (power_ - 1)) / weight;
        point_[i] = std::clamp(share > 0 ? variable.x - gap : variable.x + gap, variable.low, variable.high);
        // A value beyond the far end of its range stays where it entered.
        point_[i] = share > 0 ? std::min(point_[i], start_[i]) : std::max(point_[i], start_[i]);
    }
}

Projection::Result Projection::solve_all()
{
    for (int sweep = 0; sweep < most_tightenings; ++sweep)
        if (!tighten())
            return Result::empty;
    for (size_t i = 0; i < start_.size(); ++i)
        start_[i] = variables_[i].nearest();
    return power_ == 1 || std::isinf(power_) ? solve_linear() : solve_smooth();
}

/// Draws in the ends of each variable as far as one relation and the ends of the others force it, less rounding:
/// what is proven over the whole range of float32 proves little. False when nothing is left.
bool Projection::tighten()
{
    for (const Inequality& inequality : inequalities_)
        for (size_t i = 0; i < variables_.size(); ++i)
        {
            const double share = inequality.share[i];
            double room = inequality.most, size = std::abs(inequality.most);
            for (size_t other = 0; other < variables_.size(); ++other)
            {
                const double of_other = inequality.share[other];
                if (other == i || of_other == 0)
                    continue;
                const double least = of_other * (of_other > 0 ? variables_[other].low : variables_[other].high);
                room -= least;
                size += std::abs(least);
            }
            if (share == 0)
                continue;
            const double end = (room + size * error) / share;
            Variable& variable = variables_[i];
            (share > 0 ? variable.high : variable.low) =
                share > 0 ? std::min(variable.high, end) : std::max(variable.low, end);
            if (variable.low > variable.high)
                return false;
        }
    return true;
}

/// Where the present multipliers, all relations together, take the variables.
void Projection::answer_to_multipliers()
{
    Inequality sum{std::vector<double>(start_.size(), 0.0), 0};
    for (size_t row = 0; row < inequalities_.size(); ++row)
        for (size_t i = 0; i < start_.size(); ++i)
            sum.share[i] += multiplier_[row] * inequalities_[row].share[i];
    point_ = start_;
    move(sum, 1);
}

/// Strictly convex costs: the dual is smooth, so raising and lowering one multiplier at a time reaches its optimum.
Projection::Result Projection::solve_smooth()
{
    for (int sweep = 0; sweep < most_sweeps; ++sweep)
    {
        bool moved = false;
        for (size_t row = 0; row < inequalities_.size(); ++row)
        {
            const double before = multiplier_[row];
            const auto suffices = [&](double pressure)
            {
                multiplier_[row] = pressure;
                answer_to_multipliers();
                return value(inequalities_[row]) <= 0;
            };
            double low = 0, high = std::max(before, 0x1p-60);
            if (!suffices(0))
            {
                while (!suffices(high) && high < 1e150)
                {
                    low = high;
                    high *= 16;
                }
                multiplier_[row] = least_sufficient(low, high, suffices);
            }
            moved |= std::abs(multiplier_[row] - before) > 1e-15 * before;
        }
        if (!moved)
            break;
    }
    answer_to_multipliers();
    return close(Result::found);
}

/// L1 and the maximum norm are linear programs in how far each variable goes up and down from where it enters the box.
Projection::Result Projection::solve_linear()
{
    const size_t n = start_.size();
    const bool maximum = std::isinf(power_);
    std::vector<double> costs(2 * n + maximum, 0.0);
    double least = base_;
    for (size_t i = 0; i < n; ++i)
        least = std::max(least, variables_[i].gap(start_[i]));
    for (size_t i = 0; i < n && !maximum; ++i)
    {
        costs[i] = variables_[i].up;
        costs[n + i] = variables_[i].down;
    }
    if (maximum)
        costs[2 * n] = 1;
    Simplex simplex(costs);
    for (const Inequality& inequality : inequalities_)
    {
        std::vector<double> row(costs.size(), 0.0);
        double most = inequality.most;
        for (size_t i = 0; i < n; ++i)
        {
            row[i] = inequality.share[i];
            row[n + i] = -inequality.share[i];
            most -= inequality.share[i] * start_[i];
        }
        simplex.add_row(row, most);
    }
    for (size_t i = 0; i < 2 * n; ++i)
    {
        const Variable& variable = variables_[i % n];
        const bool up = i < n;
        std::vector<double> row(costs.size(), 0.0);
        row[i] = 1;
        simplex.add_row(row, up ? variable.high - start_[i % n] : start_[i % n] - variable.low);
        if (maximum)  // (gap at the start + weight * way) - radius <= 0
        {
            row[i] = up ? variable.up : variable.down;
            row[2 * n] = -1;
            simplex.add_row(row, least - variable.gap(start_[i % n]));
        }
    }
    const Simplex::Result result = simplex.solve();
    if (result == Simplex::Result::stalled)
        return close(Result::uncertain);
    std::copy_n(simplex.duals().begin(), inequalities_.size(), multiplier_.begin());
    const std::vector<double> ways = simplex.point();
    for (size_t i = 0; i < n; ++i)
        point_[i] = std::clamp(start_[i] + ways[i] - ways[n + i], variables_[i].low, variables_[i].high);
    return close(result == Simplex::Result::empty ? Result::empty : Result::found);
}

/// Replaces the claim by what the weighted sum of all relations proves by itself.
Projection::Result Projection::close(Result result)
{
    const std::vector<double> found = point_;
    Inequality sum{std::vector<double>(start_.size(), 0.0), 0};
    for (size_t row = 0; row < inequalities_.size(); ++row)
    {
        sum.most += multiplier_[row] * inequalities_[row].most;
        for (size_t i = 0; i < start_.size(); ++i)
            sum.share[i] += multiplier_[row] * inequalities_[row].share[i];
    }
    const Result proven = solve_one(sum, false);
    point_ = found;
    if (result == Result::empty || proven == Result::empty)
        return proven == Result::empty ? Result::empty : Result::uncertain;
    return result;
}
}  // namespace cfmaps
