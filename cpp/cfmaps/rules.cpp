#include "rules.hpp"

#include "costs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cfmaps
{
namespace
{
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double most_steps = 0x1p50;  // beyond, steps are finer than the numbers

/// Whether two numbers are at most so far apart, in exact arithmetic.
bool is_within(double from, double to, double most)
{
    const double gap = to - from, part = gap - to;
    const double rest = (to - (gap - part)) - (from + part);  // what rounding took from the gap (Knuth)
    return std::abs(gap) < most || (std::abs(gap) == most && (gap < 0 ? -rest : rest) <= 0);
}

double step_value(const AxisRule& rule, double start, double i, bool single)
{
    const double value = start + i * rule.step;
    return single ? static_cast<double>(static_cast<float>(value)) : value;
}

/// The index of the last step at or below a value; rounding may put the quotient one off.
double last_step(const AxisRule& rule, double start, double value, bool single)
{
    double i = std::floor((value - start) / rule.step);
    while (step_value(rule, start, i, single) > value)
        --i;
    while (step_value(rule, start, i + 1, single) <= value)
        ++i;
    return i;
}
}  // namespace

void Rules::finish(const Lattice& lattice)
{
    conditions_of.resize(axes.size());
    clauses_of.resize(axes.size());
    is_related.resize(axes.size());
    for (uint32_t condition = 0; condition < conditions.size(); ++condition)
        conditions_of[conditions[condition].axis].push_back(condition);
    for (uint32_t clause = 0; clause < clauses.size(); ++clause)
        for (uint32_t condition : clauses[clause])
        {
            auto& of_axis = clauses_of[conditions[condition].axis];
            if (of_axis.empty() || of_axis.back() != clause)
                of_axis.push_back(clause);
        }
    for (const Relation& relation : relations)
        for (size_t axis = 0; axis < axes.size(); ++axis)
        {
            const auto first = relation.category.begin() + lattice.cell_start[axis];
            is_related[axis] |= relation.axis[axis] != 0 || std::any_of(first, first + lattice.n_cells[axis],
                                                                        [](double share) { return share != 0; });
        }
}

double Rules::next(size_t axis, double value) const
{
    if (single && !is_discrete(axis))
        return std::nextafter(static_cast<float>(value), std::numeric_limits<float>::infinity());
    return std::nextafter(value, infinity);
}

double Rules::nearest(size_t axis, double value) const
{
    return single && !is_discrete(axis) ? static_cast<double>(static_cast<float>(value)) : value;
}

double Rules::previous(size_t axis, double value) const
{
    return -next(axis, -value);
}

double Rules::at_most(size_t axis, double value, double row) const
{
    const AxisRule& rule = axes[axis];
    double found = value;
    if (rule.values == Values::free && single)
    {
        const float near = static_cast<float>(value);
        return near > value ? std::nextafter(near, -std::numeric_limits<float>::infinity()) : near;
    }
    if (rule.values == Values::free)
        return value;
    if (rule.values == Values::whole)
        return std::floor(value);
    if (rule.values == Values::listed)
    {
        const auto after = std::upper_bound(rule.list.begin(), rule.list.end(), value);
        found = after == rule.list.begin() ? -infinity : *(after - 1);
    }
    else if (std::abs(value) < rule.step * most_steps)
    {
        const double start = rule.from_row ? row : rule.start;
        found = step_value(rule, start, last_step(rule, start, value, single), single);
    }
    return row <= value ? std::max(found, row) : found;
}

double Rules::at_least(size_t axis, double value, double row) const
{
    const AxisRule& rule = axes[axis];
    double found = value;
    if (rule.values == Values::free)
        return -at_most(axis, -value, -row);
    if (rule.values == Values::whole)
        return std::ceil(value);
    if (rule.values == Values::listed)
    {
        const auto at = std::lower_bound(rule.list.begin(), rule.list.end(), value);
        found = at == rule.list.end() ? infinity : *at;
    }
    else if (std::abs(value) < rule.step * most_steps)
    {
        const double start = rule.from_row ? row : rule.start;
        const double i = last_step(rule, start, value, single);
        found = step_value(rule, start, i, single);
        for (double up = 1; found < value; ++up)
            found = step_value(rule, start, i + up, single);
    }
    return row >= value ? std::min(found, row) : found;
}

void Slots::clear()
{
    for (auto* column : {&low, &high, &value, &cost})
        column->clear();
    for (auto* column : {&reach_low, &reach_high})
        column->clear();
    for (auto& of_forest : cell)
        of_forest.clear();
    home = 0;
    kept = -1;
    allowed.clear();
}

uint32_t Slots::of(double z) const
{
    const auto at = std::lower_bound(high.begin(), high.end(), z) - high.begin();
    return static_cast<uint32_t>(std::min<size_t>(at, size() - 1));
}

uint32_t Slots::after(size_t forest, uint32_t rank, uint32_t first, uint32_t last) const
{
    const std::vector<uint32_t>& cells = cell[forest];
    if (cells[last] <= rank)
        return last + 1;
    if (cells[first] > rank)
        return first;
    if (cells[last] - cells[first] == last - first)  // then there is exactly one slot to a cell
        return first + (rank - cells[first]) + 1;
    return static_cast<uint32_t>(std::upper_bound(cells.begin() + first, cells.begin() + last, rank) - cells.begin());
}

Slotting::Slotting(std::vector<const Lattice*> lattices, const Rules& rules)
    : lattices_(std::move(lattices)), rules_(rules)
{
}

void Slotting::prepare(std::vector<Slots>& slots, const double* row, const RowRules& of_row)
{
    const Lattice& lattice = *lattices_[0];
    slots.resize(lattice.n_axes());
    for (size_t axis = 0; axis < slots.size(); ++axis)
    {
        slots[axis].cell.resize(lattices_.size());
        slots[axis].clear();
        if (lattice.is_ordered(axis))
            prepare_ordered(slots[axis], axis, row[lattice.columns[axis][0]], of_row);
        else
            prepare_categorical(slots[axis], axis, row, of_row);
    }
}

/// Where a slot begins within the limits: at every cell of every forest, at and behind every condition.
void Slotting::find_starts(size_t axis, double low, double high, const RowRules& of_row)
{
    starts_.assign(1, low);
    const auto add_start = [&](double start)
    {
        if (low < start && start <= high && start < infinity)
            starts_.push_back(start);
    };
    for (const Lattice* lattice : lattices_)
    {
        const auto first = lattice->low.begin() + lattice->cell_start[axis], last = first + lattice->n_cells[axis];
        starts_.insert(starts_.end(), std::upper_bound(first, last, low), std::upper_bound(first, last, high));
    }
    for (uint32_t condition : rules_.conditions_of[axis])
    {
        add_start(of_row.condition_low[condition]);
        if (std::isfinite(of_row.condition_high[condition]))
            add_start(rules_.next(axis, of_row.condition_high[condition]));
    }
    find_reaches(axis, low, high);
    if (lattices_.size() > 1 || !rules_.conditions_of[axis].empty() || !rules_.margins.empty())
    {
        std::sort(starts_.begin(), starts_.end());
        starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
    }
}

/// With a margin, slots end also where the cells within its reach change.
void Slotting::find_reaches(size_t axis, double low, double high)
{
    const double margin = rules_.margins.empty() ? 0 : rules_.margins[axis];
    const Lattice& lattice = *lattices_[0];
    const auto reaches = [margin](double from, double to) { return is_within(from, to, margin); };
    for (uint32_t cell = 0; margin > 0 && cell + 1 < lattice.n_cells[axis]; ++cell)
    {
        const double below = lattice.high[lattice.cell_start[axis] + cell];
        const double above = lattice.low[lattice.cell_start[axis] + cell + 1];
        double end = rules_.nearest(axis, below + margin);  // the first number that does not reach down to the cell
        while (!reaches(end, below))
            end = rules_.previous(axis, end);
        while (reaches(end, below))
            end = rules_.next(axis, end);
        double start = rules_.nearest(axis, above - margin);  // the first that reaches up to the next
        while (!reaches(start, above))
            start = rules_.next(axis, start);
        while (reaches(rules_.previous(axis, start), above))
            start = rules_.previous(axis, start);
        for (double edge : {end, start})
            if (low < edge && edge <= high)
                starts_.push_back(edge);
    }
}

void Slotting::add_reach(Slots& slots, size_t axis, double value)
{
    const double margin = rules_.margins[axis];
    const Lattice& lattice = *lattices_[0];
    const size_t first = lattice.cell_start[axis];
    uint32_t low = slots.cell[0].back(), high = low;
    while (low > 0 && is_within(lattice.high[first + low - 1], value, margin))
        --low;
    while (high + 1 < lattice.n_cells[axis] && is_within(value, lattice.low[first + high + 1], margin))
        ++high;
    slots.reach_low.push_back(low);
    slots.reach_high.push_back(high);
}

void Slotting::add(Slots& slots, size_t axis, double x, double low, double high)
{
    double value = std::clamp(x, low, high);
    if (value != x && rules_.is_discrete(axis))
        value = x < low ? rules_.at_least(axis, low, x) : rules_.at_most(axis, high, x);
    if (!(low <= value && value <= high) || std::isinf(value))
        return;
    if (value == x)
        slots.kept = static_cast<int64_t>(slots.size());
    slots.low.push_back(low);
    slots.high.push_back(high);
    slots.value.push_back(value);
    for (size_t forest = 0; forest < lattices_.size(); ++forest)
    {
        const Lattice& lattice = *lattices_[forest];
        const auto first = lattice.low.begin() + lattice.cell_start[axis];
        auto& cells = slots.cell[forest];
        uint32_t cell = cells.empty() ? std::upper_bound(first + 1, first + lattice.n_cells[axis], value) - first - 1
                                      : cells.back();
        while (cell + 1 < lattice.n_cells[axis] && first[cell + 1] <= value)
            ++cell;
        cells.push_back(cell);
    }
    if (!rules_.margins.empty())
        add_reach(slots, axis, value);
}

void Slotting::prepare_ordered(Slots& slots, size_t axis, double x, const RowRules& of_row)
{
    double low = of_row.low[axis], high = of_row.high[axis];
    for (const Lattice* lattice : lattices_)
    {
        const size_t first = lattice->cell_start[axis], last = first + lattice->n_cells[axis] - 1;
        low = std::max(low, lattice->low[first]);
        high = std::min(high, lattice->high[last]);
    }
    if (!(low <= high))
        return;
    find_starts(axis, low, high, of_row);
    for (size_t start = 0; start < starts_.size(); ++start)
        add(slots, axis, x, starts_[start],
            start + 1 < starts_.size() ? rules_.previous(axis, starts_[start + 1]) : high);
}

void Slotting::prepare_categorical(Slots& slots, size_t axis, const double* row, const RowRules& of_row)
{
    const Lattice& lattice = *lattices_[0];
    const size_t first = lattice.cell_start[axis], n_cells = lattice.n_cells[axis];
    slots.allowed.assign((n_cells + 63) / 64, 0);
    for (uint32_t category = 0; category < n_cells; ++category)
    {
        slots.value.push_back(category);
        for (auto& cells : slots.cell)
            cells.push_back(category);
        if (of_row.allowed.empty() || of_row.allowed[first + category])
            slots.allowed[category / 64] |= uint64_t{1} << (category % 64);
    }
    slots.kept = category_of(lattice, axis, row);
}
}  // namespace cfmaps
