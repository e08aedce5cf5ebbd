#include "advise.hpp"

#include "parallel.hpp"

namespace cfmaps
{
Advisor::Advisor(const Map& map, std::vector<Demand> demands, Rules rules, Norm norm, Norm maximum)
    : map_(map), demands_(std::move(demands)), rules_(std::move(rules)), norm_(std::move(norm)),
      maximum_(std::move(maximum))
{
    rules_.finish(map.forest().lattice);
}

std::unique_ptr<Recourse> Advisor::borrow()
{
    const std::lock_guard lock(mutex_);
    if (idle_.empty())
        return std::make_unique<Recourse>(map_, demands_, rules_, norm_, maximum_);
    std::unique_ptr<Recourse> search = std::move(idle_.back());
    idle_.pop_back();
    return search;
}

void Advisor::give_back(std::unique_ptr<Recourse> search)
{
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(search));
}

std::vector<Outcome> Advisor::ask(std::span<const Plea> pleas, double time_limit, unsigned n_threads, Limits& limits)
{
    std::vector<Outcome> outcomes(pleas.size());
    std::atomic<size_t> next{0};
    const auto work = [&]
    {
        std::unique_ptr<Recourse> search = borrow();
        for (size_t row; (row = next++) < pleas.size() && !limits.is_stopped();)
            outcomes[row] = search->nearest(pleas[row], after(time_limit), limits);
        give_back(std::move(search));
    };
    if (n_threads <= 1 || pleas.size() == 1)
        work();
    else
        run_threads(n_threads, work, [&] { limits.check(never); }, [&] { limits.stop(); });
    return outcomes;
}

Harvest Advisor::within(const Plea& plea, double distance, size_t most, double time_limit, Limits& limits)
{
    std::unique_ptr<Recourse> search = borrow();
    Harvest harvest = search->within(plea, distance, most, after(time_limit), limits);
    give_back(std::move(search));
    return harvest;
}

std::vector<double> Advisor::values(const double* row, const RowRules& of_row, size_t axis)
{
    std::unique_ptr<Recourse> search = borrow();
    std::vector<double> values = search->values(row, of_row, axis);
    give_back(std::move(search));
    return values;
}

void Advisor::write(std::span<const double> values, double* row, int32_t* cells) const
{
    const Lattice& lattice = map_.forest().lattice;
    for (size_t axis = 0; axis < values.size(); ++axis)
    {
        const auto& columns = lattice.columns[axis];
        if (!lattice.is_ordered(axis))
        {
            cells[axis] = static_cast<int32_t>(values[axis]);
            for (size_t category = 0; category < columns.size(); ++category)
                row[columns[category]] = category == static_cast<size_t>(values[axis]);
            continue;
        }
        row[columns[0]] = values[axis];
        const auto first = lattice.low.begin() + lattice.cell_start[axis];
        cells[axis] = std::upper_bound(first + 1, first + lattice.n_cells[axis], values[axis]) - first - 1;
    }
}
}  // namespace cfmaps
