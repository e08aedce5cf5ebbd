#pragma once
// Questions under rules in, replies out; see explain.hpp for those without.

#include "recourse.hpp"

namespace cfmaps
{
/// Answers questions about one map under one set of rules, from any number of threads, while the map may grow.
class Advisor
{
public:
    Advisor(const Map& map, std::vector<Demand> demands, Rules rules, Norm norm, Norm maximum);

    std::vector<Outcome> ask(std::span<const Plea> pleas, double time_limit, unsigned n_threads, Limits& limits);
    Harvest within(const Plea& plea, double distance, size_t most, double time_limit, Limits& limits);
    std::vector<double> values(const double* row, const RowRules& of_row, size_t axis);

    const Map& map() const { return map_; }
    const Rules& rules() const { return rules_; }
    /// Writes the values of the axes into a row, and their cells.
    void write(std::span<const double> values, double* row, int32_t* cells) const;

private:
    std::unique_ptr<Recourse> borrow();
    void give_back(std::unique_ptr<Recourse> search);

    const Map& map_;
    const std::vector<Demand> demands_;
    Rules rules_;
    Norm norm_, maximum_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Recourse>> idle_;  // searches keep their memory between questions
};
}  // namespace cfmaps
