/* The core's clock in hertz: a chain of additions, each of which waits one cycle for the one before. */
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void)
{
    const long rounds = 50000000;
    unsigned long sum = 0, one = 1;
    const double start = now();
    for (long i = 0; i < rounds; ++i)
    {
        /* Neither joined into one addition nor known in advance. */
        for (int k = 0; k < 4; ++k)
        {
            sum += one;
            __asm__ volatile("" : "+r"(sum), "+r"(one));
        }
    }
    printf("%.0f\n", 4.0 * (double)rounds / (now() - start));
    return 0;
}
