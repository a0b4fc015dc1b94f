/**
 * `make bench`: prints the tables of `bench/`. Numbers worth keeping go to docs/performance.md by hand, with the
 * machine and the date.
 */
import { runPrograms } from "./programs.ts";

process.exit(await runPrograms("bench", ".bench.ts", process.argv.slice(2)));
