#pragma once
// Questions in, replies out: rows on the model's grid, many at once.

#include "map.hpp"
#include "search.hpp"

#include <memory>

namespace cfmaps
{
/// Which point a row asks for: one class, or `undecided` for any class but the row's own.
struct Question
{
    const double* row;
    int32_t target;
};

/// Answers questions about one map in one norm, from any number of threads, while the map may grow.
class Explainer
{
public:
    Explainer(Map& map, Norm norm, Norm maximum);

    /// Each row within its own time limit, in seconds.
    std::vector<Answer> ask(std::span<const Question> questions, double time_limit, unsigned n_threads, Limits& limits);

    const Map& map() const { return map_; }

private:
    std::unique_ptr<Search> borrow();
    void give_back(std::unique_ptr<Search> search);
    Answer ask_one(Search& search, const Question& question, double time_limit, Limits& limits);
    void leave_grown(Search& search, const Answer& answer, Clock::time_point deadline, Limits& limits);

    Map& map_;
    Norm norm_, maximum_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Search>> idle_;  // searches keep their memory between questions
};
}  // namespace cfmaps
