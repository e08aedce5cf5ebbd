#include "explain.hpp"

#include "parallel.hpp"

namespace cfmaps
{
Explainer::Explainer(Map& map, Norm norm, Norm maximum)
    : map_(map), norm_(std::move(norm)), maximum_(std::move(maximum))
{
}

std::unique_ptr<Search> Explainer::borrow()
{
    const std::lock_guard lock(mutex_);
    if (idle_.empty())
        return std::make_unique<Search>(map_.forest(), map_.nodes(), norm_, maximum_);
    std::unique_ptr<Search> search = std::move(idle_.back());
    idle_.pop_back();
    return search;
}

void Explainer::give_back(std::unique_ptr<Search> search)
{
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(search));
}

std::vector<Answer> Explainer::ask(std::span<const Question> questions, double time_limit, unsigned n_threads,
                                   Limits& limits)
{
    std::vector<Answer> answers(questions.size());
    std::atomic<size_t> next{0};
    const auto work = [&]
    {
        std::unique_ptr<Search> search = borrow();
        for (size_t row; (row = next++) < questions.size() && !limits.is_stopped();)
            answers[row] = ask_one(*search, questions[row], time_limit, limits);
        give_back(std::move(search));
    };
    if (n_threads <= 1 || questions.size() == 1)
        work();
    else
        run_threads(n_threads, work, [&] { limits.check(never); }, [&] { limits.stop(); });
    return answers;
}

Answer Explainer::ask_one(Search& search, const Question& question, double time_limit, Limits& limits)
{
    const Clock::time_point start = Clock::now(), deadline = after(time_limit);
    Answer answer = search.nearest(question.row, question.target, deadline, limits);
    if (answer.cells.empty())
        return answer;
    if (answer.label == undecided)
    {
        std::vector<double> row(question.row, question.row + map_.n_columns());
        map_.forest().lattice.move(answer.cells, row.data());
        answer.label = static_cast<int32_t>(map_.forest().trees.label(row.data()));
    }
    leave_grown(search, answer, std::min(deadline, Clock::now() + (Clock::now() - start)), limits);
    return answer;
}

/// The first query on a map may be the only one; from the second on, each leaves the map grown around it, for as long
/// as its own search took: so all of them cost at most twice the better of never growing and growing all.
void Explainer::leave_grown(Search& search, const Answer& answer, Clock::time_point deadline, Limits& limits)
{
    if (answer.evaluated == 0 || answer.status != Status::optimal || !map_.was_asked())
        return;
    Limits own;
    own.deadline = deadline;
    own.poll = [&limits] { return limits.check(never); };
    Reach reach{search.costs(), search.home_total(), search.best().total};
    map_.grow_around(reach, own);
}
}  // namespace cfmaps
