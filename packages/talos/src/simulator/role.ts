/**
 * Who may call what (Talos API roles).
 *
 * Roles are the organizations of the caller's certificate; in maintenance mode everybody is a reader. A
 * method without a rule needs an admin.
 */

/** Names of roles as certificates carry them. */
export const roles = {
  admin: "os:admin",
  operator: "os:operator",
  reader: "os:reader",
  etcdBackup: "os:etcd:backup",
  imageVerifier: "os:image:verifier",
  metaWriter: "os:meta:writer",
  impersonator: "os:impersonator",
} as const;

const { admin, operator, reader, etcdBackup, imageVerifier, metaWriter } = roles;

const machine = "/machine.MachineService/";

function rules(
  allowed: readonly string[],
  prefix: string,
  methods: readonly string[],
): [string, readonly string[]][] {
  return methods.map((method) => [prefix + method, allowed]);
}

const readers = [admin, operator, reader];

const allowedRoles: ReadonlyMap<string, readonly string[]> = new Map([
  ...rules([admin, operator], machine, [
    "EtcdAlarmDisarm",
    "EtcdDefragment",
    "ImagePull",
    "PacketCapture",
    "Reboot",
    "Restart",
    "ServiceStart",
    "ServiceStop",
    "ServiceRestart",
    "Shutdown",
  ]),
  ...rules([admin, operator, etcdBackup], machine, ["EtcdSnapshot"]),
  ...rules([admin, metaWriter], machine, ["MetaWrite", "MetaDelete"]),
  ...rules(readers, machine, [
    "CPUInfo",
    "CPUFreqStats",
    "Containers",
    "DiskStats",
    "DiskUsage",
    "Dmesg",
    "Events",
    "Hostname",
    "ImageList",
    "List",
    "LoadAvg",
    "Logs",
    "LogsContainers",
    "Memory",
    "Mounts",
    "NetworkDeviceStats",
    "Netstat",
    "Processes",
    "ServiceList",
    "Stats",
    "SystemStat",
    "Version",
  ]),
  ...rules([...readers, etcdBackup], machine, ["EtcdMemberList", "EtcdStatus", "EtcdAlarmList"]),
  // Both are open to readers here; outside maintenance mode their handlers ask for an admin.
  ...rules(readers, machine, ["ApplyConfiguration"]),
  ...rules(readers, "/storage.StorageService/", ["Disks", "BlockDeviceWipe"]),
  ...rules(readers, "/cluster.ClusterService/", ["HealthCheck"]),
  ...rules([admin, operator], "/machine.ImageService/", ["Pull"]),
  ...rules([...readers, imageVerifier], "/machine.ImageService/", ["List", "Verify"]),
  ...rules(readers, "/inspect.InspectService/", ["ControllerRuntimeDependencies"]),
  ...rules(readers, "/time.TimeService/", ["Time", "TimeCheck"]),
  ...rules(readers, "/cosi.resource.State/", ["Get", "List", "Watch"]),
]);

/** Whether a caller with these roles may call `/package.Service/Method`. */
export function mayCall(method: string, callerRoles: readonly string[]): boolean {
  return (allowedRoles.get(method) ?? [admin]).some((role) => callerRoles.includes(role));
}
