/**
 * One clear line instead of a syntax error when the wrong Node starts a program.
 */

/** Ends the process with status 2 unless Node is new enough to run TypeScript as it is. */
export function refuseOldNode(program: string): void {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > 24 || (major === 24 && minor >= 16)) return;
  process.stderr.write(
    `${program}: Node ${process.versions.node} is too old; use the one in node_modules/.bin (bin/${program} does)\n`,
  );
  process.exit(2);
}
