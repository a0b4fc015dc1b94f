/**
 * Golden builds as they are on disk: each a directory with a status file that its builder keeps.
 *
 * Reading never follows a path out of the directory: ids are plain names, passports are looked up by
 * their real path.
 */
import { constants } from "node:fs";
import { open, readdir, readFile, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { messageOf, type Edges } from "@kontinuum/std";
import { zeroTime } from "../model/bytes.ts";
import { goldenBuildSchema, goldenIdPattern, type GoldenBuild } from "./build.ts";

const maxStatusBytes = 1024 * 1024;
const maxPassportBytes = 4 * 1024 * 1024;
/** End of a build's log that is read, bytes, and lines of it that are shown. */
const logTailBytes = 8 * 1024;
const logLines = 40;
/** Builds that are listed. */
const maxBuilds = 1_000;

/** See the module comment. */
export class GoldenBuilds {
  readonly #directory: string;
  readonly #edges: Edges;

  constructor(directory: string, edges: Edges) {
    this.#directory = directory;
    this.#edges = edges;
  }

  /** Every readable build, newest update first. */
  async list(): Promise<GoldenBuild[]> {
    const names = await readdir(this.#directory).catch(() => []);
    const ids = names.filter((name) => goldenIdPattern.test(name)).slice(0, maxBuilds);
    const builds = await Promise.all(ids.map((id) => this.get(id)));
    return builds
      .flatMap((build) => (build ? [build] : []))
      .sort((a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt));
  }

  /** The build of this id, or `undefined`. */
  async get(id: string): Promise<GoldenBuild | undefined> {
    if (!goldenIdPattern.test(id)) return undefined;
    const file = join(this.#directory, id, "status.json");
    try {
      if ((await stat(file)).size > maxStatusBytes) throw new RangeError("the status file is too large");
      const raw: unknown = JSON.parse(await readFile(file, "utf8"));
      const defaults = { progressPercent: 0, message: "", startedAt: zeroTime, updatedAt: zeroTime };
      const build = goldenBuildSchema.parse(typeof raw === "object" ? { ...defaults, ...raw, id } : raw);
      return build;
    } catch (error) {
      if (
        !(error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      ) {
        this.#edges.log.warn("golden build cannot be read and was skipped", {
          id,
          problem: messageOf(error),
        });
      }
      return undefined;
    }
  }

  /** The last lines of a build's log, oldest first; none when there is no readable log. */
  async log(id: string): Promise<string[]> {
    if (!goldenIdPattern.test(id)) return [];
    try {
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
      await using file = await open(join(this.#directory, id, "job.log"), flags);
      const stats = await file.stat();
      if (!stats.isFile()) return [];
      const from = Math.max(0, stats.size - logTailBytes);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(logTailBytes), 0, logTailBytes, from);
      const lines = buffer.subarray(0, bytesRead).toString("utf8").split(/\r?\n/);
      // The first of a tail is the end of a longer line.
      return lines
        .slice(from > 0 ? 1 : 0)
        .filter((line) => line.trim() !== "")
        .slice(-logLines);
    } catch {
      return [];
    }
  }

  /** The recorded evidence of a build, or `undefined`. */
  async passport(id: string): Promise<string | undefined> {
    const build = await this.get(id);
    if (!build?.passportPath) return undefined;
    try {
      const root = await realpath(this.#directory);
      const file = await realpath(build.passportPath);
      const beside =
        build.outputPath === undefined ? undefined : `${await realpath(build.outputPath)}.passport.json`;
      if (!file.startsWith(`${root}${sep}`) && file !== beside) return undefined;
      if ((await stat(file)).size > maxPassportBytes) return undefined;
      const text = await readFile(file, "utf8");
      JSON.parse(text);
      return text;
    } catch {
      return undefined;
    }
  }
}
