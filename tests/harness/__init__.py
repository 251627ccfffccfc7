"""What the tests stand on: real servers, several processes, a hostile network, and a clock that waits for nobody.

run_folder, ports, schema    the folder and the port numbers of one test run
postgres, databases, moves   a PostgreSQL for the whole run, a database per test that refuses undeclared moves
private_postgres             a server of one test, which may be killed and restarted
valkey                       a Valkey per test process, flushed for every test
processes, child, barrier    N processes of an app that can be killed, stopped, continued and held at a failpoint
proxy                        a TCP proxy that delays, cuts and half-opens
waiting                      the one place that polls
working                      servers with workers in other processes, and a ledger of what they ran
clock, profile               the fake clock; settings with short leases
hygiene, guard               nothing outlives its test, nothing outlives the run
snippets                     the examples of a documentation page, run in order
"""
