/**
 * Ages as kubectl prints them (`5s`, `3m10s`, `47h`, `12d`, `2y30d`): two units while they matter, one after.
 */

const pair = (major: number, unit: string, minor: number, minorUnit: string): string =>
  minor === 0 ? `${major}${unit}` : `${major}${unit}${minor}${minorUnit}`;

/** The printed form of a span in milliseconds; `<invalid>` when it lies more than a second in the future. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 10) return pair(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 8) return pair(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  const days = Math.trunc(hours / 24);
  if (hours < 192) return pair(days, "d", hours % 24, "h");
  if (days < 730) return `${days}d`;
  const years = Math.trunc(days / 365);
  return years < 8 ? pair(years, "y", days % 365, "d") : `${years}y`;
}
