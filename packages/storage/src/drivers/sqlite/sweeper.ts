/**
 * Removes history below the compaction mark and gives pages back, a slice at a time.
 *
 * Looks only at entries written since the last sweep: what such an entry replaced is superseded, and a
 * deletion below the mark is nobody's any more. Every slice commits, so work is never lost and never
 * grows; going over an entry twice does no harm.
 */
import type { Clock } from "@kontinuum/std";
import type { DatabaseSync } from "node:sqlite";
import type { Revision } from "../../contract.ts";
import { columns, integer, scalar } from "./rows.ts";
import type { Statements } from "./statements.ts";

/** Log entries looked at between two looks at the clock. */
const sweepStep = 128;
/** Pages given back between two looks at the clock. */
const vacuumStep = 64;
/** Free pages that are left for the next writes, as a share of the file. */
const keptFreeShare = 0.1;

/** The remover of one database. */
export class Sweeper {
  readonly #db: DatabaseSync;
  readonly #sql: Statements;
  readonly #clock: Clock;
  #lastId = 0;

  constructor(db: DatabaseSync, sql: Statements, clock: Clock) {
    this.#db = db;
    this.#sql = sql;
    this.#clock = clock;
  }

  /** Works for about `budgetMs`; `true` when there is more to do. */
  sweep(mark: Revision, budgetMs: number): boolean {
    const until = this.#clock.monotonic() + budgetMs;
    let swept = scalar(this.#sql.get(this.#sql.getMeta).get("swept"));
    while (swept < mark) {
      swept = this.#step(swept, mark);
      if (this.#clock.monotonic() >= until) return true;
    }
    while (this.#freePagesToGive() > 0) {
      // Rows must be read for the pages to be freed: one row is one page.
      this.#db.prepare(`PRAGMA incremental_vacuum(${vacuumStep})`).all();
      if (this.#clock.monotonic() >= until) return true;
    }
    return false;
  }

  /** One committed step; returns the revision that is done. */
  #step(swept: Revision, mark: Revision): Revision {
    const sql = this.#sql;
    const page = sql.get(sql.sweepPage).all(this.#lastId, swept, mark, sweepStep);
    let done = page.length < sweepStep ? mark : swept;
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      for (const row of page) {
        const [id, rev, version, prev] = (columns(row) ?? []).map(integer);
        if (prev !== undefined && prev > 0) sql.get(sql.dropLog).run(prev);
        if (version === 0 && rev !== undefined && rev < mark && id !== undefined)
          sql.get(sql.dropLog).run(id);
        if (rev !== undefined && done < mark) done = Math.max(done, rev);
        this.#lastId = id ?? this.#lastId;
      }
      sql.get(sql.setMeta).run(done, "swept");
      this.#db.exec("COMMIT");
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      this.#lastId = 0;
      throw error;
    }
    // What changed at the mark itself is looked at again when the mark has moved on.
    if (done === mark) this.#lastId = 0;
    return page.length < sweepStep ? mark : done;
  }

  #freePagesToGive(): number {
    const pragma = (name: string): number => scalar(this.#sql.get(`PRAGMA ${name}`).get());
    return Math.floor(pragma("freelist_count") - pragma("page_count") * keptFreeShare);
  }
}
