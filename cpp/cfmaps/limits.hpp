#pragma once
// When to stop: shared by all threads of one piece of work.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <thread>

namespace cfmaps
{
using Clock = std::chrono::steady_clock;
constexpr Clock::time_point never = Clock::time_point::max();

inline Clock::time_point after(double seconds)
{
    if (!(seconds < 1e9))
        return never;
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// Budgets of time and nodes, and a flag anyone may raise. Work that meets a limit stops cleanly and says so.
class Limits
{
public:
    Clock::time_point deadline = never;
    std::size_t most_nodes = std::numeric_limits<std::size_t>::max();
    std::function<bool()> poll;  // asked now and then by the thread that made the limits: true means stop

    void stop() { stopped_.store(true, std::memory_order_relaxed); }
    bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
    std::size_t spent() const { return spent_.load(std::memory_order_relaxed); }

    /// Counts work done; true when the work has to end.
    bool spend(std::size_t n_nodes)
    {
        if (spent_.fetch_add(n_nodes, std::memory_order_relaxed) + n_nodes >= most_nodes)
            stop();
        return check(never);
    }

    /// Looks at the clock and, every 50 ms, asks `poll`; true when the work has to end.
    bool check(Clock::time_point own_deadline)
    {
        if (is_past(deadline))
            stop();
        if (poll && std::this_thread::get_id() == owner_ && is_past(next_poll_))
        {
            next_poll_ = Clock::now() + std::chrono::milliseconds(50);
            if (poll())
                stop();
        }
        return is_stopped() || is_past(own_deadline);
    }

private:
    static bool is_past(Clock::time_point time) { return time != never && Clock::now() >= time; }

    std::atomic<bool> stopped_{false};
    std::atomic<std::size_t> spent_{0};
    std::thread::id owner_ = std::this_thread::get_id();
    Clock::time_point next_poll_ = Clock::now() + std::chrono::milliseconds(50);
};
}  // namespace cfmaps
