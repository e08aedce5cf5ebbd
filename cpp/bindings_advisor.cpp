#include "bindings.hpp"

#include "cfmaps/advise.hpp"

#include <algorithm>

using namespace bindings;

namespace
{
using cfmaps::Advisor;
using Clauses = std::vector<std::vector<std::uint32_t>>;

cfmaps::Rules make_rules(const Integers& kinds, const std::vector<Vector>& lists, const Matrix& steps,
                         const Flags& from_row, const Matrix& prices, const Flags& has_table,
                         const Integers& condition_axis, const Flags& condition_negated, const Clauses& clauses,
                         const Matrix& relation_axis, const Matrix& relation_category, const Vector& relation_most,
                         std::int64_t most_changes, const Vector& margins, bool single)
{
    cfmaps::Rules rules;
    for (std::size_t axis = 0; axis < kinds.size(); ++axis)
        rules.axes.push_back({static_cast<cfmaps::Values>(kinds(axis)), copy<double>(lists[axis]), steps(axis, 0),
                              steps(axis, 1), from_row(axis), prices(axis, 0), prices(axis, 1), prices(axis, 2),
                              has_table(axis)});
    for (std::size_t i = 0; i < condition_axis.size(); ++i)
        rules.conditions.push_back({static_cast<std::uint32_t>(condition_axis(i)), condition_negated(i)});
    rules.clauses = clauses;
    const auto row_of = [](const Matrix& matrix, std::size_t row)
    { return std::vector<double>(&matrix(row, 0), &matrix(row, 0) + matrix.shape(1)); };
    for (std::size_t row = 0; row < relation_most.size(); ++row)
        rules.relations.push_back({row_of(relation_axis, row), row_of(relation_category, row), relation_most(row)});
    if (most_changes >= 0)
        rules.most_changes = static_cast<std::size_t>(most_changes);
    rules.single = single;
    if (std::any_of(margins.data(), margins.data() + margins.size(), [](double margin) { return margin > 0; }))
        rules.margins = copy<double>(margins);
    return rules;
}

void make_advisor(Advisor* self, const cfmaps::Map& map, const cfmaps::Rules& rules, double power,
                  const Vector& weights, const std::vector<Matrix>& category_costs,
                  const std::vector<Matrix>& largest_category_costs, const std::vector<cfmaps::Map*>& demands,
                  const Integers& demand_labels, const Flags& demand_others)
{
    if (rules.axes.size() != map.forest().lattice.n_axes() || demands.size() > 30)
        throw std::invalid_argument("rules must have one entry per axis, demands at most 30");
    std::vector<cfmaps::Demand> wanted;
    for (std::size_t i = 0; i < demands.size(); ++i)
        wanted.push_back({&demands[i]->forest(), {static_cast<std::uint32_t>(demand_labels(i)), demand_others(i)}});
    new (self) Advisor(map, std::move(wanted), rules, make_norm(power, weights, category_costs),
                       make_norm(std::numeric_limits<double>::infinity(), weights, largest_category_costs));
}

/// The part of the rules that depends on the row, for many rows.
struct Limits
{
    const Matrix &low, &high, &condition_low, &condition_high;
    const FlagMatrix& allowed;
    const std::vector<Vector>& gaps;

    cfmaps::RowRules of(std::size_t row) const
    {
        const auto part = [row](const Matrix& matrix)
        { return std::span<const double>(matrix.data() + row * matrix.shape(1), matrix.shape(1)); };
        const std::size_t n_cells = allowed.shape(1);
        return {part(low),
                part(high),
                part(condition_low),
                part(condition_high),
                {reinterpret_cast<const std::uint8_t*>(allowed.data()) + row * n_cells, n_cells},
                gaps.empty() ? std::span<const double>() : span(gaps[row])};
    }
    void check(const Advisor& advisor, std::size_t n_rows) const
    {
        const std::size_t n_axes = advisor.rules().axes.size(), n_conditions = advisor.rules().conditions.size();
        const bool fits =
            low.shape(0) == n_rows && low.shape(1) == n_axes && high.shape(0) == n_rows && high.shape(1) == n_axes &&
            condition_low.shape(0) == n_rows && condition_low.shape(1) == n_conditions &&
            condition_high.shape(0) == n_rows && condition_high.shape(1) == n_conditions &&
            (allowed.shape(1) == 0 ||
             (allowed.shape(0) == n_rows && allowed.shape(1) == advisor.map().forest().lattice.low.size())) &&
            (gaps.empty() || gaps.size() == n_rows);
        if (!fits)
            throw std::invalid_argument("limits must have one row per row asked about");
    }
};

void set(Replies& replies, std::size_t row, const cfmaps::Outcome& outcome, const Advisor& advisor)
{
    const std::size_t n_rows = replies.n_rows;
    double* point = &replies.points[row * replies.n_columns];
    advisor.write(outcome.values, point, &replies.cells[row * replies.n_axes]);
    const bool found = outcome.is_itself || !outcome.values.empty();
    replies.numbers[row] = outcome.distance;
    replies.numbers[n_rows + row] = outcome.lower_bound;
    replies.codes[row] = static_cast<std::int32_t>(outcome.status);
    replies.codes[n_rows + row] = found ? static_cast<std::int32_t>(advisor.map().forest().trees.label(point)) : -1;
    replies.codes[2 * n_rows + row] = outcome.source;
    replies.work[row] = static_cast<std::int64_t>(outcome.visited);
    replies.work[n_rows + row] = static_cast<std::int64_t>(outcome.evaluated);
}

Replies ask(Advisor& advisor, const Matrix& rows, const Integers& targets, const Matrix& low, const Matrix& high,
            const Matrix& condition_low, const Matrix& condition_high, const FlagMatrix& allowed,
            const std::vector<Vector>& gaps, const Flags& keeps, double time_limit, unsigned n_threads)
{
    const std::size_t n_rows = rows.shape(0), n_columns = advisor.map().n_columns(), n_axes = low.shape(1);
    const Limits row_limits{low, high, condition_low, condition_high, allowed, gaps};
    if (rows.shape(1) != n_columns || targets.size() != n_rows || keeps.size() != n_rows)
        throw std::invalid_argument("rows must have a column per column of the model, targets an entry per row");
    row_limits.check(advisor, n_rows);
    Replies replies(rows, n_axes);
    Poll poll{nb::none()};
    {
        const nb::gil_scoped_release no_python;
        std::vector<cfmaps::Plea> pleas;
        for (std::size_t row = 0; row < n_rows; ++row)
            pleas.push_back(
                {rows.data() + row * n_columns, targets.data()[row], row_limits.of(row), keeps.data()[row]});
        cfmaps::Limits limits;
        limits.poll = [&] { return poll.ask(0, 0); };
        const auto outcomes = advisor.ask(pleas, time_limit, n_threads, limits);
        for (std::size_t row = 0; row < n_rows; ++row)
            set(replies, row, outcomes[row], advisor);
    }
    poll.raise_if_failed();
    return replies;
}

/// All irreducible points within a distance: rows, distances, cells, labels, and whether these are all.
auto within(Advisor& advisor, const Matrix& rows, std::int32_t target, const Matrix& low, const Matrix& high,
            const Matrix& condition_low, const Matrix& condition_high, const FlagMatrix& allowed,
            const std::vector<Vector>& gaps, double distance, std::size_t most, double time_limit)
{
    const std::size_t n_columns = advisor.map().n_columns(), n_axes = low.shape(1);
    const Limits row_limits{low, high, condition_low, condition_high, allowed, gaps};
    if (rows.shape(0) != 1 || rows.shape(1) != n_columns)
        throw std::invalid_argument("rows must be one row with a column per column of the model");
    row_limits.check(advisor, 1);
    std::vector<double> points, distances;
    std::vector<std::int32_t> cells, labels;
    bool is_complete = false;
    Poll poll{nb::none()};
    {
        const nb::gil_scoped_release no_python;
        cfmaps::Limits limits;
        limits.poll = [&] { return poll.ask(0, 0); };
        const cfmaps::Harvest harvest =
            advisor.within({rows.data(), target, row_limits.of(0), false}, distance, most, time_limit, limits);
        is_complete = harvest.is_complete;
        for (const cfmaps::Finding& finding : harvest.findings)
        {
            points.insert(points.end(), rows.data(), rows.data() + n_columns);
            cells.resize(cells.size() + n_axes);
            double* point = points.data() + points.size() - n_columns;
            advisor.write(finding.values, point, cells.data() + cells.size() - n_axes);
            distances.push_back(finding.total);
            labels.push_back(static_cast<std::int32_t>(advisor.map().forest().trees.label(point)));
        }
    }
    poll.raise_if_failed();
    const std::size_t n_found = distances.size();
    return std::tuple{hand_over(std::move(points), {n_found, n_columns}), hand_over(std::move(distances), {n_found}),
                      hand_over(std::move(cells), {n_found, n_axes}), hand_over(std::move(labels), {n_found}),
                      is_complete};
}

auto values(Advisor& advisor, const Matrix& rows, const Matrix& low, const Matrix& high, const Matrix& condition_low,
            const Matrix& condition_high, const FlagMatrix& allowed, std::size_t row, std::size_t axis)
{
    const std::vector<Vector> no_gaps;
    const Limits row_limits{low, high, condition_low, condition_high, allowed, no_gaps};
    row_limits.check(advisor, rows.shape(0));
    if (row >= rows.shape(0) || axis >= advisor.rules().axes.size() || rows.shape(1) != advisor.map().n_columns())
        throw std::invalid_argument("row and axis must lie within the rows and the axes");
    std::vector<double> found = advisor.values(rows.data() + row * rows.shape(1), row_limits.of(row), axis);
    const std::size_t n_found = found.size();
    return hand_over(std::move(found), {n_found});
}
}  // namespace

void bindings::bind_advisor(nb::module_& m)
{
    nb::class_<cfmaps::Rules>(m, "Rules")
        .def(nb::new_(&make_rules), nb::arg("kinds"), nb::arg("lists"), nb::arg("steps"), nb::arg("from_row"),
             nb::arg("prices"), nb::arg("has_table"), nb::arg("condition_axis"), nb::arg("condition_negated"),
             nb::arg("clauses"), nb::arg("relation_axis"), nb::arg("relation_category"), nb::arg("relation_most"),
             nb::arg("most_changes"), nb::arg("margins"), nb::arg("single"));
    nb::class_<Advisor>(m, "Advisor")
        .def("__init__", &make_advisor, nb::keep_alive<1, 2>(), nb::keep_alive<1, 8>(), nb::arg("map"),
             nb::arg("rules"), nb::arg("power"), nb::arg("weights"), nb::arg("category_costs"),
             nb::arg("largest_category_costs"), nb::arg("demands"), nb::arg("demand_labels"), nb::arg("demand_others"))
        .def("ask", &ask, nb::arg("rows"), nb::arg("targets"), nb::arg("low"), nb::arg("high"),
             nb::arg("condition_low"), nb::arg("condition_high"), nb::arg("allowed"), nb::arg("gaps"), nb::arg("keeps"),
             nb::arg("time_limit"), nb::arg("n_threads"))
        .def("within", &within, nb::arg("rows"), nb::arg("target"), nb::arg("low"), nb::arg("high"),
             nb::arg("condition_low"), nb::arg("condition_high"), nb::arg("allowed"), nb::arg("gaps"),
             nb::arg("distance"), nb::arg("most"), nb::arg("time_limit"))
        .def("values", &values, nb::arg("rows"), nb::arg("low"), nb::arg("high"), nb::arg("condition_low"),
             nb::arg("condition_high"), nb::arg("allowed"), nb::arg("row"), nb::arg("axis"));
}
