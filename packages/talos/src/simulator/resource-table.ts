/**
 * The resources a node knows: names, namespaces, short names and columns (Talos resource definitions, 1.13 and 1.14).
 *
 * One a line: type without its ending `.talos.dev`, namespace, display name, own short names, columns as
 * `title=path`, flags: `s` only an admin may read it, `n` since 1.14, `x` no other short names than its own.
 */

/** See the module's comment. */
export const resourceTable = `
APIServerConfigs.kubernetes | controlplane | APIServerConfig |  |  | s
APIServiceConfigs.runtime | runtime | APIServiceConfig
AcquireConfigSpecs.v1alpha1 | runtime | AcquireConfigSpec
AcquireConfigStatuses.v1alpha1 | runtime | AcquireConfigStatus
AddressSpecs.net | network | AddressSpec
AddressStatuses.net | network | AddressStatus | address,addresses | Address=.address; Link=.linkName
AdjtimeStatuses.v1alpha1 | runtime | AdjtimeStatus |  | Offset=.offset; EstError=.estError; MaxError=.maxError; Status=.status; Sync=.syncStatus
AdmissionControlConfigs.kubernetes | controlplane | AdmissionControlConfig
Affiliates.cluster | cluster | Affiliate |  | Hostname=.hostname; Machine Type=.machineType; Addresses=.addresses
ApiCertificates.secrets | secrets | ApiCertificate |  |  | s
AuditPolicyConfigs.kubernetes | controlplane | AuditPolicyConfig |  |  | s
AuthenticationConfigs.kubernetes | controlplane | AuthenticationConfig |  |  | sn
AuthorizationConfigs.kubernetes | controlplane | AuthorizationConfig |  |  | s
BGPInstanceConfigs.net | network | BGPInstanceConfig |  | Local ASN=.localASN; Router ID=.routerID; VRF=.vrf; Neighbors=.neighbors | n
BGPPeerStatuses.net | network | BGPPeerStatus |  | Instance=.instance; Peer=.peer; Peer AS=.peerASN; State=.state; Since=.since; Received=.received | n
BaseRuntimeSpecConfigs.cri | cri | BaseRuntimeSpecConfig |  |  | n
BlockDevices.block | runtime | BlockDevice |  | Type=.type; PartitionName=.partitionName; Generation=.generation
BlockSymlinks.block | runtime | BlockSymlink
BootIDs.runtime | runtime | BootID |  | Boot ID=.bootID | n
BootedEntries | runtime | BootedEntry |  | Booted Entry=.bootedEntry
BootstrapManifestsConfigs.kubernetes | controlplane | BootstrapManifestsConfig
CPUCores.hardware | hardware | CPUCore | cpucore,cpucores | Socket=.socket; Core=.coreID; Model=.modelName; Logical CPUs=.logicalCPUs | n
CPUStats.perf | perf | CPUStat |  | User=.cpuTotal.user; System=.cpuTotal.system
CertSANs.secrets | secrets | CertSAN |  |  | s
ConfigStatuses.kubernetes | controlplane | ConfigStatus |  | Ready=.ready; Secrets Version=.version
ContainerImageStatuses.containers | containers | ContainerImageStatus | containerimagestatus,containerimagestatuses | Phase=.phase; Digest=.digest | n
ContainerInstanceSpecs.containers | containers | ContainerInstanceSpec | containerinstancespec,containerinstancespecs | Container=.containerID; Generation=.generation; Image=.image | n
ContainerInstanceStatuses.containers | containers | ContainerInstanceStatus | containerinstancestatus,containerinstancestatuses | Container=.containerID; Phase=.phase; PID=.pid; Exit Code=.exitCode | n
ContainerLifecycles.containers | containers | ContainerLifecycle | containerlifecycle,containerlifecycles |  | n
ContainerMountStatuses.containers | containers | ContainerMountStatus | containermountstatus,containermountstatuses | Ready=.ready; Error=.error | n
ContainerSpecs.containers | containers | ContainerSpec | containerspec,containerspecs | Image=.image.ref | n
ControllerManagerConfigs.kubernetes | controlplane | ControllerManagerConfig
CustomizationConfigs.cri | cri | CustomizationConfig |  |  | sn
DNSResolveCaches.net | network | DNSResolveCach |  | Status=.status
DNSUpstreams.net | network | DNSUpstream |  | Healthy=.healthy; Address=.addr
DeviceConfigSpecs.net | network | DeviceConfigSpec |  |  | s
DevicesStatuses.runtime | runtime | DevicesStatus |  | Ready=.ready
Diagnostics.runtime | runtime | Diagnostic |  | Message=.message
DiscoveredVolumes.block | runtime | DiscoveredVolume |  | Type=.type; Size=.pretty_size; Discovered=.name; Label=.label; PartitionLabel=.partition_label
DiscoveredVolumesStatuses.block | runtime | DiscoveredVolumesStatus |  | Ready=.ready | n
DiscoveryConfigs.cluster | config | DiscoveryConfig |  |  | s
DiscoveryRefreshRequests.block | runtime | DiscoveryRefreshRequest |  | Request=.request
DiscoveryRefreshStatuses.block | runtime | DiscoveryRefreshStatus |  | Request=.request
Disks.block | runtime | Disk |  | Size=.pretty_size; Read Only=.readonly; Transport=.transport; Rotational=.rotational; WWID=.wwid; Model=.model; Serial=.serial
EncryptionSalts.secrets | secrets | EncryptionSalt |  |  | s
Endpoints.kubernetes | controlplane | Endpoint |  | Addresses=.addresses; Hosts=.hosts
Environments.runtime | runtime | Environment | env | Variables=.variables
EtcFileSpecs.files | files | EtcFileSpec |  |  | s
EtcFileStatuses.files | files | EtcFileStatus
EtcdConfigs.etcd | etcd | EtcdConfig |  | Image=.image
EtcdEncryptionConfigs.kubernetes | k8s | EtcdEncryptionConfig |  |  | sn
EtcdMembers.etcd | etcd | EtcdMember |  | Member ID=.memberID
EtcdRootSecrets.secrets | secrets | EtcdRootSecret |  |  | s
EtcdSecrets.secrets | secrets | EtcdSecret |  |  | s
EtcdSpecs.etcd | etcd | EtcdSpec |  | Name=.name; AdvertisedAddresses=.advertisedAddresses; ListenPeerAddresses=.listenPeerAddresses; ListenClientAddresses=.listenClientAddresses
EthernetSpecs.net | network | EthernetSpec
EthernetStatuses.net | network | EthernetStatus | ethtool | Link=.linkState; Speed=.speedMbit
EventSinkConfigs.runtime | runtime | EventSinkConfig
ExtensionServiceConfigStatuses.runtime | runtime | ExtensionServiceConfigStatus
ExtensionServiceConfigs.runtime | runtime | ExtensionServiceConfig |  |  | s
ExtensionStatuses.runtime | runtime | ExtensionStatus | extensions | Name=.metadata.name; Version=.metadata.version
ExtraManifestsConfigs.kubernetes | controlplane | ExtraManifestsConfig
FSScrubSchedules.block | runtime | FSScrubSchedule |  | Filesystem=.filesystem; Interval=.interval; Next Scrub=.nextScrub | n
FSScrubStatuses.block | runtime | FSScrubStatus |  | Mountpoint=.mountpoint; Interval=.interval; Latest start time=.time; Latest run duration=.duration; Latest status=.status | n
HardwareAddresses.net | network | HardwareAddress
HostDNSConfigs.net | network | HostDNSConfig |  | Enabled=.enabled
HostnameSpecs.net | network | HostnameSpec
HostnameStatuses.net | network | HostnameStatus | hostname | Hostname=.hostname; Domainname=.domainname
Identities.cluster | cluster | Identity |  | ID=.nodeId
ImageCacheConfigs.cri | cri | ImageCacheConfig |  | Status=.status; CopyStatus=.copyStatus; Roots=.roots
ImageFactorySchematics.runtime | runtime | ImageFactorySchematic |  | Schematic ID=.schematicId; Flavor=.flavor; API URL=.apiUrl | n
ImageVerificationRules.security | security | ImageVerificationRule |  | Pattern=.imagePattern; Skip=.skip; Deny=.deny
Infos.cluster | cluster | Info |  | Cluster ID=.clusterId; Cluster Name=.clusterName
KernelCmdlines.runtime | runtime | KernelCmdline | cmdline | Cmdline=.cmdline
KernelModuleSpecs.runtime | runtime | KernelModuleSpec
KernelModuleStatuses.runtime | runtime | KernelModuleStatus | module,modules | Type=.type; State=.state | n
KernelParamDefaultSpecs.runtime | runtime | KernelParamDefaultSpec
KernelParamSpecs.runtime | runtime | KernelParamSpec
KernelParamStatuses.runtime | runtime | KernelParamStatus | sysctls,kernelparameters,kernelparams | Current=.current; Default=.default; Unsupported=.unsupported
KmsgLogConfigs.runtime | runtime | KmsgLogConfig
KubePrismConfigs.kubernetes | k8s | KubePrismConfig |  | Host=.host; Port=.port; Endpoints=.endpoints
KubePrismEndpoints.kubernetes | k8s | KubePrismEndpoint |  | Hosts=.endpoints[*].host; Ports=.endpoints[*].port
KubePrismStatuses.kubernetes | k8s | KubePrismStatus |  | HOST=.host; HEALTHY=.healthy
KubeSpanConfigs.kubespan | config | KubeSpanConfig |  |  | s
KubeSpanEndpoints.kubespan | kubespan | KubeSpanEndpoint |  | Endpoint=.endpoint; Affiliate ID=.affiliateID
KubeSpanIdentities.kubespan | kubespan | KubeSpanIdentity |  | Address=.address; PublicKey=.publicKey | s
KubeSpanPeerSpecs.kubespan | kubespan | KubeSpanPeerSpec |  | Label=.label; Endpoints=.endpoints
KubeSpanPeerStatuses.kubespan | kubespan | KubeSpanPeerStatus |  | Label=.label; Endpoint=.endpoint; State=.state; Rx=.receiveBytes; Tx=.transmitBytes
KubeletConfigs.kubernetes | k8s | KubeletConfig |  |  | s
KubeletKubeconfigs.kubernetes | k8s | KubeletKubeconfig |  | Hash=.hash
KubeletLifecycles.kubernetes | k8s | KubeletLifecycle
KubeletSecrets.secrets | secrets | KubeletSecret |  |  | s
KubeletSpecs.kubernetes | k8s | KubeletSpec |  |  | s
KubeletStatuses.kubernetes | k8s | KubeletStatus |  | Image=.image | n
KubernetesAccessConfigs.cluster | config | KubernetesAccessConfig
KubernetesDynamicCerts.secrets | secrets | KubernetesDynamicCert |  |  | s
KubernetesRootSecrets.secrets | secrets | KubernetesRootSecret |  |  | s
KubernetesSecrets.secrets | secrets | KubernetesSecret |  |  | s
LVMLogicalVolumeSpecs.storage | storage | LVMLogicalVolumeSpec |  | VG=.vgName; Name=.name; Type=.type | n
LVMLogicalVolumeStatuses.storage | storage | LVMLogicalVolumeStatus | lvs | Path=.path; VG=.vgName; Layout=.layout; Size=.prettySize; Active=.active | n
LVMPhysicalVolumeSpecs.storage | storage | LVMPhysicalVolumeSpec |  | Device=.device; VG=.vgName | n
LVMPhysicalVolumeStatuses.storage | storage | LVMPhysicalVolumeStatus | pvs | Device=.device; VG=.vgName; Size=.prettySize; Free=.prettyFree; Allocatable=.allocatable | n
LVMRefreshRequests.storage | storage | LVMRefreshRequest |  | Request=.request | n
LVMValidationErrors.storage | storage | LVMValidationError |  | VG=.vgName; Message=.message | n
LVMVolumeGroupSpecs.storage | storage | LVMVolumeGroupSpec |  | Name=.name | n
LVMVolumeGroupStatuses.storage | storage | LVMVolumeGroupStatus | vgs | Name=.name; Permissions=.permissions; Size=.prettySize; Free=.prettyFree; PVs=.pvCount; LVs=.lvCount | n
LinkAliasSpecs.net | network | LinkAliasSpec |  | Alias=.alias
LinkRefreshes.net | network | LinkRefresh
LinkSpecs.net | network | LinkSpec |  |  | s
LinkStatuses.net | network | LinkStatus | link,links | Alias=.alias; Type=.type; Kind=.kind; Hw Addr=.hardwareAddr; Oper State=.operationalState; Link State=.linkState
LoadedKernelModules.runtime | runtime | LoadedKernelModule | module,modules | State=.state
MDArraySpecs.storage | storage | MDArraySpec |  | Level=.level | n
MDArrayStatuses.storage | storage | MDArrayStatus |  | Level=.level; Status=.status; Sync=.syncAction; Device=.device | n
MDRefreshRequests.storage | storage | MDRefreshRequest |  | Request=.request | n
MachineConfigs.config | config | MachineConfig |  |  | s
MachineResetSignals.runtime | runtime | MachineResetSignal
MachineStatuses.runtime | runtime | MachineStatus |  | Stage=.stage; Ready=.status.ready
MachineTypes.config | config | MachineType |  | Type=@
MaintenanceRootSecrets.secrets | secrets | MaintenanceRootSecret |  |  | s
MaintenanceServiceConfigs.runtime | runtime | MaintenanceServiceConfig
MaintenanceServiceRequests.runtime | runtime | MaintenanceServiceRequest
ManifestStatuses.kubernetes | controlplane | ManifestStatus
Manifests.kubernetes | controlplane | Manifest
Members.cluster | cluster | Member |  | Hostname=.hostname; Machine Type=.machineType; OS=.operatingSystem; Addresses=.addresses
MemoryModules.hardware | hardware | MemoryModule | memorymodules,ram | Manufacturer=.manufacturer; Model=.productName; SizeMiB=.sizeMiB
MemoryStats.perf | perf | MemoryStat |  | Used=.used; Total=.total
MetaKeys.runtime | runtime | MetaKey | meta | Value=.value
MetaLoads.runtime | runtime | MetaLoad |  | Done=.done
MountRequests.block | runtime | MountRequest |  | Volume=.volumeID; Parent=.parentID; Requesters=.requesters
MountStatuses.block | runtime | MountStatus |  | Source=.source; Target=.target; Filesystem=.filesystem; Volume=.spec.volumeID
MountStatuses.runtime | runtime | MountStatus | mounts | Source=.source; Target=.target; Filesystem Type=.filesystemType | x
NTPStatuses.v1alpha1 | runtime | NTPStatus |  | Spike Detected=.spikeDetected; Consecutive Spikes=.consecutiveSpikes | n
Namespaces.meta.cosi.dev | meta | Namespace | ns
NetworkStatuses.net | network | NetworkStatus | netstatus,netstatuses | Address=.addressReady; Connectivity=.connectivityReady; Hostname=.hostnameReady; Etc=.etcFilesReady
NfTablesChains.net | network | NfTablesChain | chain,chains | Type=.type; Hook=.hook; Priority=.priority; Policy=.policy
NodeAddressFilters.net | network | NodeAddressFilter |  | Include Subnets=.includeSubnets; Exclude Subnets=.excludeSubnets
NodeAddressSortAlgorithms.net | network | NodeAddressSortAlgorithm |  | Algorithm=.algorithm
NodeAddresses.net | network | NodeAddress |  | Addresses=.addresses; SortAlgorithm=.sortAlgorithm
NodeAnnotationSpecs.k8s | k8s | NodeAnnotationSpec |  | Value=.value | s
NodeCordonedSpecs.k8s | k8s | NodeCordonedSpec |  |  | s
NodeIPConfigs.kubernetes | k8s | NodeIPConfig
NodeIPs.kubernetes | k8s | NodeIP
NodeLabelSpecs.k8s | k8s | NodeLabelSpec |  | Value=.value | s
NodeStatuses.kubernetes | k8s | NodeStatus |  | Ready=.nodeReady; Unschedulable=.unschedulable
NodeTaintSpecs.k8s | k8s | NodeTaintSpec |  | Effect=.effect; Value=.value | s
Nodenames.kubernetes | k8s | Nodename |  | Nodename=.nodename
OOMActions | runtime | OOMAction | oomaction,oomactions | Time=.time; Score=.score | s
OSRootSecrets.secrets | secrets | OSRootSecret |  |  | s
OperatorSpecs.net | network | OperatorSpec |  |  | s
PCIDevices.hardware | hardware | PCIDevice | devices,device | Class=.class; Subclass=.subclass; Vendor=.vendor; Product=.product
PCIDriverRebindConfigs.runtime | hardware | PCIDriverRebindConfig |  | Name=.name; PCI ID=.pciID; TargetDriver=.targetDriver
PCIDriverRebindStatuses.runtime | hardware | PCIDriverRebindStatus | pcidriverrebinds | Name=.name; PCI ID=.pciID; TargetDriver=.targetDriver
PCRStatuses.hardware | hardware | PCRStatus
PKIStatuses.etcd | etcd | PKIStatus |  | Ready=.ready; Secrets Version=.version
PlatformConfigs.net | network | PlatformConfig
PlatformMetadatas | runtime | PlatformMetadata |  | Platform=.platform; Type=.instanceType; Region=.region; Zone=.zone
ProbeSpecs.net | network | ProbeSpec
ProbeStatuses.net | network | ProbeStatus | probe,probes | Success=.success
Processors.hardware | hardware | Processor | cpus,cpu | Manufacturer=.manufacturer; Model=.productName; Cores=.coreCount; Threads=.threadCount
RebootRequests.runtime | runtime | RebootRequest |  |  | n
RegistryConfigs.cri | cri | RegistryConfig |  |  | s
ResolverSpecs.net | network | ResolverSpec |  | Layer=.layer; Resolvers=.dnsServers; Search Domains=.searchDomains
ResolverStatuses.net | network | ResolverStatus | resolvers | Resolvers=.dnsServers; Search Domains=.searchDomains
ResourceDefinitions.meta.cosi.dev | meta | ResourceDefinition | api-resources | Aliases=.aliases[:]
RouteSpecs.net | network | RouteSpec
RouteStatuses.net | network | RouteStatus | route,routes | Destination=.dst; Gateway=.gateway; Link=.outLinkName; Metric=.priority
RoutingRuleSpecs.net | network | RoutingRuleSpec
RoutingRuleStatuses.net | network | RoutingRuleStatus | routingrule,routingrules | Src=.src; Dst=.dst; Table=.table; Priority=.priority
SBOMItems | runtime | SBOMItem | sbom,sboms | Version=.version; License=.license; Extension=.extension
SchedulerConfigs.kubernetes | controlplane | SchedulerConfig
SeccompProfiles.cri | cri | SeccompProfile
SecretStatuses.kubernetes | controlplane | SecretStatus |  | Ready=.ready; Secrets Version=.version
SecurityStates | runtime | SecurityState |  | SecureBoot=.secureBoot; UKISigningKeyFingerprint=.ukiSigningKeyFingerprint; PCRSigningKeyFingerprint=.pcrSigningKeyFingerprint; SELinuxState=.selinuxState; ModuleSignatureEnforced=.moduleSignatureEnforced
ServicePIDs.runtime | runtime | ServicePID |  | PID=.pid
Services.v1alpha1 | runtime | Service | svc | Running=.running; Healthy=.healthy; Health Unknown=.unknown
SiderolinkConfigs.siderolink | config | SiderolinkConfig |  | API Endpoint=.apiEndpoint; Tunnel=.tunnel | s
SiderolinkStatuses.siderolink | config | SiderolinkStatus |  | Host=.host; Connected=.connected
SiderolinkTunnels.siderolink | config | SiderolinkTunnel |  | API Endpoint=.apiEndpoint; Link name=.linkName; MTU=.mtu; Node address=.nodeAddress | s
StaticHosts.net | network | StaticHost |  | Addresses=.addresses | n
StaticPodServerStatuses.kubernetes | k8s | StaticPodServerStatus
StaticPodStatuses.kubernetes | k8s | StaticPodStatus | podstatus | Ready=.conditions[?(@.type=="Ready")].status
StaticPods.kubernetes | k8s | StaticPod
SwapStatuses.block | runtime | SwapStatus | swap,swaps | Device=.device; Size=.sizeHuman; Used=.usedHuman; Priority=.priority
SystemDisks.block | runtime | SystemDisk |  | Disk=.diskID
SystemInformations.hardware | hardware | SystemInformation | systeminformation | Manufacturer=.manufacturer; ProductName=.productName; Version=.version; SerialNumber=.serialnumber; UUID=.uuid; WakeUpType=.wakeUpType; SKUNumber=.skuNumber
TUFTrustedRoots.security | security | TUFTrustedRoot |  | Last Refresh=.lastRefreshTime
TimeServerSpecs.net | network | TimeServerSpec
TimeServerStatuses.net | network | TimeServerStatus | timeserver,timeservers | Timeservers=.timeServers
TimeStatuses.v1alpha1 | runtime | TimeStatus |  | Synced=.synced
TrustdCertificates.secrets | secrets | TrustdCertificate |  |  | s
UnattendedInstallStatuses.runtime | runtime | UnattendedInstallStatus |  | Phase=.phase | n
UniqueMachineTokens.runtime | runtime | UniqueMachineToken |  | Token=.token
UserDiskConfigStatuses.block | runtime | UserDiskConfigStatus |  | Ready=.ready
Versions.runtime | runtime | Version |  | Name=.name; Version=.version
VolumeConfigs.block | runtime | VolumeConfig |  |  | s
VolumeLifecycles.block | runtime | VolumeLifecycle
VolumeMountRequests.block | runtime | VolumeMountRequest |  | Volume ID=.volumeID; Requester=.requester
VolumeMountStatuses.block | runtime | VolumeMountStatus |  | Volume ID=.volumeID; Requester=.requester; Target=.target
VolumeStatuses.block | runtime | VolumeStatus |  | Type=.type; Phase=.phase; Location=.location; Size=.prettySize
VolumeTrimSchedules.block | runtime | VolumeTrimSchedule |  | Filesystem=.filesystem; Interval=.interval; Next Trim=.nextTrim | n
WatchdogTimerConfigs.runtime | runtime | WatchdogTimerConfig |  | Device=.device; Timeout=.timeout
WatchdogTimerStatuses.runtime | runtime | WatchdogTimerStatus |  | Device=.device; Timeout=.timeout
ZswapStatuses.block | runtime | ZswapStatus |  | Total Size=.totalSizeHuman; Stored Pages=.storedPages; Written Back=.writtenBackPages; Pool Limit Hit=.poolLimitHit
`;
