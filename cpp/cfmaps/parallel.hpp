#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cfmaps
{
/// Runs `work` on several threads while this one calls `watch` every 20 ms. The first exception of a worker is thrown
/// here, after `give_up` told the others and all have ended.
inline void run_threads(unsigned n_threads, const std::function<void()>& work, const std::function<void()>& watch,
                        const std::function<void()>& give_up)
{
    std::mutex mutex;
    std::condition_variable done;
    unsigned n_running = n_threads;
    std::exception_ptr failure;
    const auto fail = [&]
    {
        const std::lock_guard lock(mutex);
        if (!failure)
            failure = std::current_exception();
        give_up();
    };
    const auto run = [&]
    {
        try
        {
            work();
        }
        catch (...)
        {
            fail();
        }
        const std::lock_guard lock(mutex);
        if (--n_running == 0)
            done.notify_all();
    };
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < n_threads; ++thread)
        threads.emplace_back(run);
    std::unique_lock lock(mutex);
    while (!done.wait_for(lock, std::chrono::milliseconds(20), [&] { return n_running == 0; }))
    {
        lock.unlock();
        try
        {
            watch();
        }
        catch (...)
        {
            fail();
        }
        lock.lock();
    }
    lock.unlock();
    threads.clear();
    if (failure)
        std::rethrow_exception(failure);
}
}  // namespace cfmaps
