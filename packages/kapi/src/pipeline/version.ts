/**
 * What `/version` says: the Kubernetes release whose behaviour is served.
 */

/** The served release's minor version. */
export const servedMinor = "35";

/** The body of `/version`; every value is a text. */
export const versionInfo = {
  major: "1",
  minor: servedMinor,
  emulationMajor: "1",
  emulationMinor: servedMinor,
  minCompatibilityMajor: "1",
  minCompatibilityMinor: "34",
  gitVersion: "v1.35.2+kapi",
  gitCommit: "0000000000000000000000000000000000000000",
  gitTreeState: "clean",
  buildDate: "2026-01-01T00:00:00Z",
  goVersion: "go1.25.0",
  compiler: "gc",
  platform: `${process.platform}/${process.arch === "x64" ? "amd64" : process.arch}`,
} as const;
