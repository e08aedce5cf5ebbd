#pragma once
// The cheapest point of a box that keeps linear relations.

#include <cstddef>
#include <span>
#include <vector>

namespace cfmaps
{
using std::size_t;

/// A number of a row, where it may go, and what a gap of 1 costs upwards and downwards.
struct Variable
{
    double x, low, high, up, down;

    double nearest() const;
    double gap(double z) const { return z > x ? up * (z - x) : down * (x - z); }
};

/// The shares times the values sum to at most this.
struct Inequality
{
    std::vector<double> share;
    double most;
};

/// Whether sum(a * z) <= most, in exact arithmetic.
bool holds_exactly(std::span<const double> a, std::span<const double> z, double most);

/// Solves min sum(gap^power), or min max(base, gap) for the maximum norm, over box and relations. Points are as exact
/// as float64; bounds are certain: they come from one relation, a weighted sum of all, that is solved by itself.
class Projection
{
public:
    enum class Result
    {
        found,
        empty,      // certainly
        uncertain,  // not solved; the bound holds
    };

    Result solve(std::span<const Variable> variables, std::span<const Inequality> inequalities, double power,
                 double base);

    const std::vector<double>& point() const { return point_; }
    /// What the variables cost at least: a sum of powers, or a maximum.
    double bound() const { return bound_; }
    /// Weights under which the relations are tight.
    const std::vector<double>& multipliers() const { return multiplier_; }

private:
    Result solve_one(const Inequality& inequality, bool is_exact);
    void go_greedily(const Inequality& inequality, double excess);
    void go_evenly(const Inequality& inequality);
    Result solve_all();
    bool tighten();
    Result solve_smooth();
    Result solve_linear();
    Result close(Result result);
    void move(const Inequality& inequality, double pressure);
    void answer_to_multipliers();
    double stretch(size_t i) const;
    double value(const Inequality& inequality) const;
    double cost() const;

    std::vector<Variable> variables_;
    std::span<const Inequality> inequalities_;
    double power_ = 1, base_ = 0, bound_ = 0;
    std::vector<double> start_, point_, multiplier_;
    std::vector<size_t> order_;
};
}  // namespace cfmaps
