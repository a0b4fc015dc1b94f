/**
 * The contract as executable cases: every statement of `../contract.ts` is one, and every driver runs
 * all of them.
 *
 * Cases use keys under a prefix of their own and count revisions from where they start, so that they
 * also run against a store that is shared or that has a past. Test code only.
 */
import { describe, test } from "node:test";
import { Bench, type Subject } from "./case-bench.ts";
import { compactionCases } from "./compaction.contract.ts";
import { leaseCases } from "./lease.contract.ts";
import { rangeCases } from "./range.contract.ts";
import { txnCases } from "./txn.contract.ts";
import { watchCases } from "./watch.contract.ts";

export type { Subject };

/** Registers the suite for one driver. */
export function testContract(
  driver: string,
  open: () => Promise<Subject>,
  options: { readonly skip?: string; readonly timeoutMs?: number } = {},
): void {
  const { skip, timeoutMs = 20_000 } = options;
  const groups = {
    range: rangeCases,
    txn: txnCases,
    watch: watchCases,
    lease: leaseCases,
    compaction: compactionCases,
  };
  for (const [group, cases] of Object.entries(groups)) {
    describe(`${driver}: ${group}`, { skip: skip ?? false }, () => {
      for (const [index, { name, run }] of cases.entries()) {
        test(name, { timeout: timeoutMs }, async () => {
          const subject = await open();
          const bench = new Bench(subject, `/contract/${group}/${index}/`);
          try {
            await run(bench);
          } finally {
            bench.end();
            await subject.close();
          }
        });
      }
    });
  }
}
