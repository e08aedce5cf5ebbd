#pragma once
// A dense dual simplex for a handful of rows: min c v over v >= 0 and A v <= b, where no cost is negative.

#include <cstddef>
#include <vector>

namespace cfmaps
{
class Simplex
{
public:
    explicit Simplex(std::vector<double> costs);
    void add_row(std::vector<double> row, double most);

    enum class Result
    {
        optimal,
        empty,
        stalled,
    };
    Result solve();

    std::vector<double> point() const;
    /// Of each row: its price at the optimum, or its weight in the proof that there is no point.
    const std::vector<double>& duals() const { return duals_; }

private:
    size_t width() const { return costs_.size() + rows_.size() + 1; }
    void lay_out();
    int leaving() const;
    int entering(size_t row) const;
    void pivot(size_t row, size_t column);

    std::vector<double> costs_, most_;
    std::vector<std::vector<double>> rows_;
    std::vector<std::vector<double>> table_;  // the rows, then the costs; slacks behind the variables, then the ends
    std::vector<size_t> basis_;
    std::vector<double> duals_;
};
}  // namespace cfmaps
